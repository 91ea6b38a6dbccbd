"""Copies that are written as copies: hot where a step repeats them, or each row is one.

Each program of the first table is silent by default and reports the marked lines in scope `all`;
its near neighbours are reported in both.
"""

from __future__ import annotations

from linting import ALL, HOT, check, findings, program, table

ASKED_FOR = {
    "a copy that a helper computes with": """
        def entropy(x: Tensor):
            p = x.softmax(-1).cpu()  # TPF102
            return -(p * p.log()).sum(-1)

        def median(x: Tensor):
            return np.median(x.cpu().numpy())  # TPF102
        """,
    "a copy for somebody else": """
        def decoded(x: Tensor, decoder):
            coordinates = x.detach().cpu()  # TPF102
            return decoder(x.tolist()), coordinates  # TPF102
        """,
    "a loop that collects": """
        def snapshot(model: nn.Module):
            kept = {}
            for name, p in model.named_parameters():
                kept[name] = p.detach().cpu()  # TPF102
            return kept
        """,
}


@table(ASKED_FOR)
def test_what_is_asked_for(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


REPEATED = {
    "a number, whoever takes it": """
        def largest(x: Tensor):
            return round(x.max().item(), 3)  # TPF101

        class Tracker:
            def seen(self, x: Tensor):
                self.last = x[0].item()  # TPF101
        """,
    "a number that goes back to tensors": """
        def scaled(x: Tensor, limit: float):
            top = x.max().item()  # TPF101
            if top > limit:
                x = x * (limit / top)
            return x
        """,
    "a loop of training": """
        def fit(model: nn.Module, data, optimizer):
            losses = []
            for x in data:
                loss = model(x).mean()
                loss.backward()
                losses.append(loss.item())  # TPF101
            return losses
        """,
    "a loop over steps": """
        def sample(model: nn.Module, x: Tensor, timesteps: list[int]):
            for t in timesteps:
                x = torch.mul(x, t)
                print(x.cpu())  # TPF102
        """,
    "a loop that hands on": """
        def solve(model: nn.Module, x: Tensor, n: int):
            for i in range(n):
                x = torch.mul(x, model(x))
                if x.max().item() > 3:  # TPF101
                    break
        """,
    "batches of data": """
        def evaluate_all(model: nn.Module, loader):
            scores = []
            for x, y in loader:
                scores.append(torch.dot(x, y).item())  # TPF101
            return scores
        """,
    "row by row": """
        def rows(x: Tensor, masks: Tensor):
            found = [row.detach().cpu() for row in x]  # TPF201, TPF102
            for i in range(3):
                found.append(masks[i].cpu().tolist())  # TPF102
            return found
        """,
    "in what a step calls": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return self.rows(x)

            def rows(self, x: Tensor):
                for name, p in self.named_parameters():
                    print(p.cpu())  # TPF102
                return x.max().item()  # TPF101
        """,
    "pieces of what is too large, in a loop over the data": """
        def rows(x: Tensor):
            found = []
            for i in range(0, len(x), 64):
                found.append(x[i : i + 64].cpu())  # TPF102
            return found
        """,
    "predictions that are collected": """
        def predict_all(model: nn.Module, loader):
            found = []
            for x in loader:
                found.append(torch.mul(x, model(x)).cpu())  # TPF102
            return found
        """,
    "a loop until something holds, which calls a model": """
        def decode(model: nn.Module):
            token = torch.zeros(1, device="cuda")
            while True:
                token = model(token)
                if token.item() == 2:  # TPF101
                    return
        """,
}


@table(REPEATED)
def test_what_is_repeated(code: str) -> None:
    check(code, HOT)


SELDOM = {
    "until the branch itself says otherwise": """
        class Loss:
            def compute_loss(self, x: Tensor):
                if self.first:
                    self.limit = x[x > 0]  # TPF402
                    self.first = False
                return x
        """,
    "what is kept": """
        import functools

        class Rope(nn.Module):
            @functools.lru_cache(maxsize=None)
            def table(self, device: torch.device, x: Tensor):
                return x[x > 0]  # TPF402

            def forward(self, x: Tensor):
                return self.table(x.device, x)
        """,
    "what only numpy can do, and a dataset's positions": """
        def unpacked(x: Tensor):
            return torch.from_numpy(np.unpackbits(x.cpu().numpy()))  # TPF102

        def subset(data, positions: Tensor):
            return torch.utils.data.Subset(data, positions.cpu().tolist())  # TPF102
        """,
    "tables that are moved": """
        def fitted(rows, device):
            bins = [torch.tensor(row) for row in rows]
            return [b.to(device) for b in bins]  # TPF502
        """,
    "a name that says where it lies": """
        def forward(self, x: Tensor, lengths_cpu: Tensor):
            if lengths_cpu.max() > 3:  # TPF301
                x = x[: lengths_cpu[0]]  # TPF107
            return x
        """,
    "what numpy is given as well": """
        def forward(self, x: Tensor, scores: Tensor):
            if scores.max() > 3:  # TPF301
                x = x[scores > 1]  # TPF402
            return x, scores.numpy()  # TPF102
        """,
    "lengths of what was packed": """
        def forward(self, x: nn.utils.rnn.PackedSequence):
            rows, lengths = nn.utils.rnn.pad_packed_sequence(x)
            if lengths.max() > 3:  # TPF301
                return rows[3:]
            return rows
        """,
    "rows that are only put into tuples and dicts": """
        def forward(self, a: Tensor, b: Tensor, first: Tensor):
            kept = []
            for x, y in zip(a[:-1], b[:-1]):  # TPF201
                kept.append((x, y))
            q, k, v = [x.to(first.dtype) for x in (first, *a.sin())]  # TPF201
            return kept, q, k, v, [{"x": x, "y": y} for x, y in zip(a[:-1], b[:-1])]  # TPF201
        """,
    "a number divided by what is most likely one": """
        def forward(self, x: Tensor, groups):
            h, w = x.shape
            return int(torch.div(h, groups)), int(torch.true_divide(w, groups))  # TPF101, TPF101
        """,
    "where only other steps return": """
        class Trainer:
            def train_step(self, x: Tensor, step: int):
                if not self.should_log:
                    return
                print(x.mean().item())  # TPF101

            def eval_step(self, x: Tensor, step: int):
                if step % 10 != 0:
                    return x
                return x[x > 0]  # TPF402
        """,
    "called every so many steps alone": """
        class Optimizer:
            def step(self, x: Tensor):
                if self.steps % self.gap == 0:
                    self.renew(x)

            def renew(self, x: Tensor):
                for i in range(3):
                    x = self.cut(x[x > i])  # TPF402
                return x

            def cut(self, x: Tensor):
                return x[x < 9]  # TPF402
        """,
    "a loop that is written out": """
        def sides(limit):
            left, right = torch.rand(3, device="cuda"), torch.rand(3, device="cuda")
            for side in (left, right):
                if side.max() > limit:  # TPF301
                    return False
            return True
        """,
    "a reference, a check, a file that is written": """
        def attention_ref(x: Tensor):
            return x[x > 0]  # TPF402

        def verify_sums(x: Tensor):
            if x.sum() > 3:  # TPF301
                raise ValueError("too much")

        def serialized(x: Tensor):
            return x

        def serialize_tensor(x: Tensor):
            return [row for row in x]  # TPF201

        class PdbWriter(Base):
            def put(self, x: Tensor):
                return x[x > 0]  # TPF402
        """,
    "a loop until something holds, which calls no model": """
        def decode(model: nn.Module):
            token = torch.zeros(1, device="cuda")
            while True:
                token = torch.mul(token, 2)
                if token.item() == 2:  # TPF101
                    return
        """,
    "one round for each name": """
        def prepared(table, names):
            energies = torch.rand(9, device="cuda")
            return {name: energies[table[name]].item() for name in names}  # TPF101
        """,
    "what stands beside the loop over steps, in a loop of its own": """
        def predict_all(model: nn.Module, loader, names):
            found = []
            for x in loader:
                found.append(torch.mul(x, model(x)))
            for name in names:
                torch.cuda.synchronize()  # TPF106
            return found
        """,
}


@table(SELDOM)
def test_what_is_seldom(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


NO_SITE = {
    "errors that nobody looks at": """
        def forward(self, x: Tensor):
            factor, info = torch.linalg.cholesky_ex(x, check_errors=False)
            return factor
        """,
    "what grows is needed whole in each round": """
        def sample(model: nn.Module, tokens: Tensor):
            for i in range(9):
                token = model(tokens)
                tokens = torch.cat((tokens, token), dim=-1)
            return tokens
        """,
}


@table(NO_SITE)
def test_what_is_no_site(code: str) -> None:
    assert findings(program(code), ALL) == []


STILL_ONE = {
    "a flag that stays": """
        class Loss:
            def compute_loss(self, x: Tensor):
                if self.first:
                    x = x[x > 0]  # TPF402
                    self.second = False
                return x
        """,
    "what is on the host from some line on": """
        class Net(nn.Module):
            def forward(self, x: Tensor, cpu_count: int):
                if x.max() > cpu_count:  # TPF301
                    x = x + 1
                x = x.cpu()  # TPF102
                return x.numpy()
        """,
    "rows that are formatted, and rows that are computed with": """
        def forward(self, a: Tensor, b: Tensor):
            kept = []
            for x, y in zip(a[:-1], b[:-1]):  # TPF201
                kept.append(x * y)
            text = "%g %g" % (1, *b.sin())  # TPF104, TPF201
            return text, self.join(*a.sin())  # TPF201
        """,
    "an accelerator's own numbers, and errors that are looked for": """
        def forward(self, x: Tensor):
            h, w = x.shape
            factor, info = torch.linalg.cholesky_ex(x, check_errors=True)  # TPF404
            return int(torch.div(x.sum(), h))  # TPF101
        """,
    "what grows is only asked for its size": """
        def sample(model: nn.Module, tokens: Tensor):
            for i in range(9):
                tokens = torch.cat((tokens, model(tokens.shape[0])), dim=-1)  # TPF205
            return tokens
        """,
    "a flag that says something else, a branch that goes on": """
        class Trainer:
            def train_step(self, x: Tensor, log: bool):
                if not log:
                    x = x.exp()
                if not self.should_log:
                    x = x * 2
                return x[x > 0]  # TPF402
        """,
    "called every so many steps and in each": """
        class Optimizer:
            def step(self, x: Tensor):
                if self.steps % self.gap == 0:
                    x = self.renew(x)
                return self.renew(x)

            def renew(self, x: Tensor):
                return x[x > 0]  # TPF402
        """,
    "a loop that is written out in a step": """
        def forward(self, left: Tensor, right: Tensor):
            for side in (left, right):
                if side.max() > 1:  # TPF301
                    return False
            return True
        """,
}


@table(STILL_ONE)
def test_what_is_a_site_all_the_same(code: str) -> None:
    check(code, HOT)
