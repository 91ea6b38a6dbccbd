"""Copies to the device, and copies to the host that are read too early: TPF501 to TPF504."""

from __future__ import annotations

from linting import ALL, HOT, check, findings, program, table

MADE_ON_THE_HOST = {
    "a factory, then a device of any kind": """
        DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

        def step(x: Tensor, n: int, device: torch.device, self_device):
            a = torch.zeros(n).to(x.device)  # TPF501
            b = torch.ones(n, 4, dtype=torch.long).cuda()  # TPF501
            c = torch.arange(n).to(device)  # TPF501
            d = torch.randn(n).to(device=device, dtype=torch.float16)  # TPF501
            e = torch.full((n,), 3.0).to(DEVICE)  # TPF501
            f = torch.eye(n).to(x)  # TPF501
            g = torch.linspace(0, 1, n).type_as(x)  # TPF501
            h = torch.empty(n).to(self_device)  # TPF501
            i = torch.rand(n).to("cuda:0", non_blocking=True)  # TPF501
            return a, b, c, d, e, f, g, h, i
        """,
    "computed from factories alone": """
        def step(x: Tensor, n: int):
            a = torch.arange(n).view(1, -1).to(x.device)  # TPF501
            b = (torch.arange(n) + 1).float().to(x.device)  # TPF501
            c = torch.cat([torch.zeros(1), torch.arange(n)]).cuda()  # TPF501
            d = torch.triu(torch.ones(n, n), diagonal=1).to(x.device)  # TPF501
            e = torch.zeros(n)
            e = e.unsqueeze(0).expand(4, -1)
            return a, b, c, d, e.to(x.device)  # TPF501
        """,
    "made there, or left on the host": """
        def step(x: Tensor, n: int, device: torch.device, dtype):
            a = torch.zeros(n, device=x.device)
            b = torch.zeros(n, device=device).to(x.device)
            c = torch.zeros(n).to("cpu")
            none = torch.zeros((0, n)).to(x.device), torch.ones((n, 0, 2)).cuda()
            d = torch.zeros(n).to(torch.float16)
            e = torch.zeros(n).to(dtype)
            f = torch.zeros(n).to(x.dtype)
            g = torch.zeros(n).to(device=torch.device("cpu"))
            h = torch.zeros_like(x).to(device)
            i = x.new_zeros(n).to(x.device)
            return a, b, c, d, e, f, g, h, i
        """,
    "on the host on purpose": """
        def step(x: Tensor, n: int, g: torch.Generator):
            a = torch.randn(n, generator=g).to(x.device)
            b = torch.randn(n, device="cpu").to(x.device)
            return a, b
        """,
    "memory of a size": """
        def step(x: Tensor, n: int):
            a = torch.FloatTensor(n, 4).to(x.device)  # TPF501
            b = torch.Tensor(n).cuda()  # TPF501
            return a, b, torch.LongTensor(n, 4).random_().cuda()  # TPF501
        """,
    "written to by numbers alone": """
        def step(x: Tensor, n: int):
            a = torch.empty(n).uniform_(0, 1).to(x.device)  # TPF501
            b = torch.zeros(n).add_(1).to(x.device)  # TPF501
            return a, b
        """,
    "another default device": """
        torch.set_default_device("cuda")

        def step(x: Tensor, n: int):
            return torch.zeros(n).to(x.device), torch.tensor([1.0]).to(x.device)  # TPF502
        """,
    "a block with another default device": """
        def step(x: Tensor, n: int, device: torch.device):
            with torch.device("cuda"):
                a = torch.zeros(n).to(x.device)
            with device:
                b = torch.arange(n).to(x.device)
            return a, b, torch.zeros(n).to(x.device)  # TPF501
        """,
    "set-up code": """
        class Net(nn.Module):
            def __init__(self, n: int, device):
                super().__init__()
                self.register_buffer("steps", torch.arange(n).to(device))
        """,
}


# The flag alone gains little where the memory is pageable.
PAGEABLE = {
    "filled with data before it is moved": """
        def fill(target):
            target[0] = 1

        def step(x: Tensor, rows: list[int]):
            mask = torch.zeros(8)
            for i, row in enumerate(rows):
                mask[i] = row
            other = torch.zeros(8)
            other.copy_(torch.from_numpy(np.ones(8)))
            third = torch.zeros(8)
            fill(third)
            fourth = torch.zeros(8)
            fourth += torch.load("x.pt")
            a = mask.to(x.device), other.to(x.device)  # TPF503, TPF503
            return a, third.to(x.device), fourth.to(x.device)  # TPF503, TPF503
        """,
}

# An unknown operand of what is made of numbers is one, and so is what is written into it.
MADE_OF_NUMBERS = {
    "arithmetic with an attribute that nothing tells": """
        class Rotary(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, x: Tensor):
                inverse = 1.0 / (10000 ** (torch.arange(0, self.dim, 2).float() / self.dim))
                angles = torch.outer(torch.arange(x.shape[1]), inverse)
                return x * angles.cos().to(x.device)  # TPF501
        """,
    "a comparison with a number": """
        def step(x: Tensor, n: int):
            return x[:, (torch.arange(9) > n).to(x.device)]  # TPF501, TPF402
        """,
    "a part that is assigned": """
        class Positions(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                table = torch.zeros(5000, dim)
                places = torch.arange(5000).unsqueeze(1).float()
                table[:, 0::2] = torch.sin(places)
                table[:, 1::2] = torch.cos(places)
                self.table = table.unsqueeze(0)

            def forward(self, x: Tensor):
                return x + self.table[:, : x.size(1)].to(x.device)  # TPF501
        """,
    "a number that is assigned": """
        def step(x: Tensor, n: int):
            mask = torch.zeros(9)
            mask[:n] = 1
            return x * mask.to(x.device)  # TPF501
        """,
    "a number that is assigned in the step that makes the mask": """
        def train(net: nn.Module, loader, optimizer):
            for x in loader:
                mask = torch.zeros(9)
                mask[3:] = 1
                net(x.cuda() * mask.to("cuda")).sum().backward()  # TPF501
                optimizer.step()
        """,
    "data that is assigned, added, or written by a loop": """
        def step(x: Tensor, rows, lengths):
            first, second, third = torch.zeros(9), torch.zeros(9), torch.zeros(9, 9)
            first[0] = rows
            second = second + torch.load("x.pt")
            for i, length in enumerate(lengths):
                third[i, :length] = 1
            return x * first.to(x.device) * second.to(x.device) * third.to(x.device)
        """,
}


@table(MADE_OF_NUMBERS)
def test_made_of_numbers_then_moved(code: str) -> None:
    check(code)


@table(MADE_ON_THE_HOST)
def test_made_on_the_host_then_moved(code: str) -> None:
    check(code)


@table(PAGEABLE)
def test_a_copy_from_pageable_memory_is_told_in_scope_all(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


HOST_DATA = {
    # eriklindernoren/PyTorch-GAN, implementations/acgan/acgan.py
    "a legacy class that is chosen as a device is": """
        cuda = True if torch.cuda.is_available() else False
        FloatTensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor

        if cuda:
            LongTensor = torch.cuda.LongTensor
        else:
            LongTensor = torch.LongTensor

        def train(net: nn.Module, loader: torch.utils.data.DataLoader):
            for imgs, labels in loader:
                real = imgs.type(FloatTensor)  # TPF503
                labels = labels.type(LongTensor)  # TPF503
                valid = FloatTensor(imgs.shape[0], 1).fill_(1.0)
                net(real, labels, valid).sum().backward()
        """,
    "numbers and lists": """
        def step(x: Tensor, value: float, device: torch.device):
            values, unknown = [value, 0.5], CONSTANT
            a = torch.tensor(0.5, device=x.device)  # TPF502
            b = torch.tensor(values, device="cuda", dtype=torch.float32)  # TPF502
            c = torch.as_tensor([1, 2], device=device)  # TPF502
            d = x.new_tensor([1.0, value])  # TPF502
            e = torch.cuda.FloatTensor(values)  # TPF502
            f = torch.tensor(unknown, device=device)  # TPF502
            g = torch.asarray(values, device=device)  # TPF502
            return a, b, c, d, e, f, g
        """,
    "made, then moved: one cause": """
        def step(x: Tensor, value: float):
            a = torch.tensor([value, 1.0]).to(x.device)  # TPF502
            b = torch.tensor(value).view(1, 1).cuda()  # TPF502
            c = torch.FloatTensor([value]).to(x.device)  # TPF502
            d = torch.tensor([value]).type_as(x)  # TPF502
            return a, b, c, d
        """,
    "arrays": """
        def step(x: Tensor, n: int):
            a = np.arange(n)
            b = torch.from_numpy(a).to(x.device)  # TPF502
            c = torch.as_tensor(a, device=x.device)  # TPF502
            d = torch.tensor(np.ones(3)).float().cuda()  # TPF502
            e = torch.from_numpy(a).to(x.device, non_blocking=True)  # TPF503
            return b, c, d, e
        """,
    "numbers as arguments of a kernel": """
        def step(x: Tensor, value: float, n: int):
            a = torch.full((), value, device=x.device)
            b = torch.zeros(n, device=x.device), torch.ones(n, device=x.device)
            c = torch.arange(0, n, 2, device=x.device)
            d = torch.full_like(x, value), x.new_full((2,), value), torch.cuda.FloatTensor(n, 4)
            e = x.new(x.size()), x.new(x.shape), x.new(*x.size()), torch.cuda.FloatTensor(x.shape)
            return a, b, c, d, x * value
        """,
    "nothing to copy": """
        def step(x: Tensor):
            a = torch.tensor([], device=x.device), x.new_tensor([])
            return a, torch.Tensor([]).to(x.device), torch.tensor([]).cuda()
        """,
    "each moved once, and kept there": """
        class Rotary:
            def __init__(self, n: int):
                self.tables = [torch.linspace(0, 1, n), torch.linspace(0, 2, n)]

            def forward(self, x: Tensor):
                self.tables = [table.to(x.device) for table in self.tables]
                return x * self.tables[0]
        """,
    "moved once, and kept there": """
        class Scheduler:
            def __init__(self, n: int):
                self.betas = torch.linspace(0, 1, n)

            def step(self, x: Tensor):
                self.betas = self.betas.to(x.device)
                return x * self.betas
        """,
    "kept on the host, moved in every step": """
        class Scheduler:
            def __init__(self, n: int):
                self.betas = torch.linspace(0, 1, n)
                self.names = torch.tensor([0.5, 1.0])

            def step(self, x: Tensor):
                return x * self.betas.to(x.device), self.names.to(x.device)  # TPF501, TPF502
        """,
    "what stays on the host, or may be a tensor there": """
        def step(x: Tensor, values: list[float], unknown, other: Tensor):
            a = torch.tensor(values), torch.tensor(values, device="cpu")
            b = torch.as_tensor(unknown, device=x.device)
            c = torch.as_tensor(other, device=x.device)
            d = torch.tensor(values).to(torch.float64)
            e = torch.tensor(values, device=None)
            return a, b, c, d, e
        """,
    "cold code": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.tensor([0.5], device="cuda"))
        """,
}


@table(HOST_DATA)
def test_host_data_to_the_device(code: str) -> None:
    check(code)


def test_what_is_kept_is_to_be_moved_once() -> None:
    found = findings(program(HOST_DATA["kept on the host, moved in every step"]))
    assert found
    assert all("move it once, e.g. as a buffer" in one for one in found)


def test_a_test_that_ends_its_loop_has_nothing_to_choose() -> None:
    code = """
        def solve(x: Tensor):
            for i in range(100):
                x = x / 2
                if x.max() > 3:
                    x = x * 2
                if x.norm() < 1e-3:
                    break
            return x
        """
    choosing, ending = findings(program(code), ALL)
    assert "torch.where" in choosing
    assert "test every few rounds" in ending


def test_advice_fits_the_data() -> None:
    code = """
        def step(x: Tensor, value: float):
            b = torch.tensor(value, device=x.device)
            means = [0.1, 0.2]
            c = torch.tensor(means, device=x.device), torch.tensor([MEAN, 2.0], device=x.device)
            height = x.shape[0]
            d = torch.tensor([value, 1.0], device=x.device), x.new_tensor([height, 2])
            e = torch.stack([torch.tensor([n, 0]).to(x.device) for n in range(9)])
            return b, c, d, e, torch.from_numpy(np.arange(9)).cuda()
        """
    scalar, *found, array = findings(program(code))
    assert "torch.full((), value, device=d)" in scalar
    assert ["make it once, e.g. as a buffer" in one for one in found] == [True, True] + [False] * 3
    assert ["use device data" in one for one in found] == [False] * 2 + [True] * 3
    assert "pin it for non_blocking" in array


PINNED = {
    "a loader that pins": """
        from torch.utils.data import DataLoader

        def train(dataset, device: torch.device):
            loader = DataLoader(dataset, num_workers=4, pin_memory=True, persistent_workers=True)
            for x, y in loader:
                x = x.to(device)  # TPF503
                y = y.cuda(non_blocking=True)
                x = x.to(torch.float16)
        """,
    "a loader that does not": """
        from torch.utils.data import DataLoader

        def train(dataset, device: torch.device, collate, options):
            for batch in DataLoader(dataset, num_workers=4):
                a = batch.to(device)
                b = batch.to(device, non_blocking=True)  # TPF503
            for batch in DataLoader(dataset, num_workers=4, **options):
                a = batch.to(device, non_blocking=True)
                b = batch.to(device)  # TPF503
        """,
    "a batch that is a dict": """
        from torch.utils.data import DataLoader

        def train(dataset, device: torch.device):
            loader = DataLoader(dataset, num_workers=4, pin_memory=True, persistent_workers=True)
            for batch in loader:
                a = batch["image"].to(device)  # TPF503
                b = {k: v.to(device) for k, v in batch.items()}  # TPF503
                c = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
                d = batch.get("label").cuda()  # TPF503
        """,
    "tensors that are pinned": """
        def step(x: Tensor, n: int, device: torch.device, wait: bool):
            a = torch.empty(n, pin_memory=True)
            a.copy_(x)
            b = a.to(device)  # TPF503
            c = x.pin_memory().to(device)  # TPF503
            d = x.pin_memory().to(device, non_blocking=True)
            e = x.pin_memory().to(device, non_blocking=wait)
            f = x.pin_memory()[0].cuda()  # TPF503
            return b, c, d, e, f
        """,
    "where nothing is known": """
        def step(x: Tensor, batch, loader, device: torch.device):
            a = x.to(device)
            b = batch.to(device, non_blocking=True)
            for y in loader:
                y.to(device), y.to(device, non_blocking=True)
            return a, b, x.cpu().to(device, non_blocking=True)  # TPF102
        """,
}


@table(PINNED)
def test_copies_that_block(code: str) -> None:
    check(code)


RACES = {
    "read at once": """
        def step(x: Tensor):
            a = x.sum().to("cpu", non_blocking=True)
            b = a + 1  # TPF504
            c = x.max().to(device="cpu", non_blocking=True)
            d = c.item()  # TPF504
            e = x.to("cpu", non_blocking=True)
            if e.any():  # TPF504
                b = b + 2
            return b, d
        """,
    "as an array": """
        def step(x: Tensor):
            return x.to("cpu", non_blocking=True).numpy().sum()  # TPF504
        """,
    "collected, then read": """
        def several(xs: list[Tensor], named: dict[str, Tensor]):
            kept = []
            for x in xs:
                kept.append(x.sum().to("cpu", non_blocking=True))
            mean = torch.stack(kept).mean()  # TPF504
            made = [x.to("cpu", non_blocking=True) for x in xs]
            state = {}
            for name, x in named.items():
                state[name] = x.to("cpu", non_blocking=True)
            arrays = {name: x.numpy() for name, x in state.items()}  # TPF504
            batch = {name: x.to("cpu", non_blocking=True) for name, x in named.items()}
            return mean, arrays, batch["x"].sum(), sum(x.sum() for x in made)  # TPF504, TPF504
        """,
    "collected, waited for, then read": """
        def several(xs: list[Tensor], named: dict[str, Tensor]):
            state = {}
            for name, x in named.items():
                state[name] = x.to("cpu", non_blocking=True)
            made = [x.to("cpu", non_blocking=True) for x in xs]
            torch.cuda.synchronize()
            return {name: x.numpy() for name, x in state.items()}, [x.tolist() for x in made]
        """,
    "read before a later wait": """
        def several(x: Tensor, y: Tensor):
            number = x.to("cpu", non_blocking=True).tolist()  # TPF504
            array = y.to("cpu", non_blocking=True).numpy()
            print(array)  # TPF504
            total = array + 1, array.sum(), np.max(array)  # TPF504, TPF504, TPF504
            torch.cuda.synchronize()
            return number, total, array.mean()
        """,
    "saved half done": """
        def save(x: Tensor):
            copied = x.to("cpu", non_blocking=True)
            torch.save(copied, "a")  # TPF504
            torch.save({"x": copied}, "b")  # TPF504
            torch.cuda.synchronize()
            torch.save(copied, "c")
        """,
    "memory that is filled later": """
        def fill(x: Tensor, y: Tensor):
            kept = torch.empty(4, pin_memory=True)
            kept.copy_(x, non_blocking=True)
            early = kept.sum()  # TPF504
            torch.cuda.synchronize()
            other = torch.empty(4)
            other.copy_(torch.ones(4), non_blocking=True)
            third = torch.empty(4)
            third.copy_(x)
            return early, kept.sum(), other.sum(), third.sum()
        """,
    "in cold code too": """
        def save_summary(x: Tensor):
            copied = x.to("cpu", non_blocking=True)
            return copied.tolist()  # TPF504
        """,
    "waited for": """
        def step(x: Tensor, event: torch.cuda.Event, stream: torch.cuda.Stream):
            a = x.to("cpu", non_blocking=True)
            torch.cuda.current_stream().synchronize()  # TPF106
            b = a + 1
            c = x.to("cpu", non_blocking=True)
            event.record()
            event.synchronize()  # TPF106
            d = c.tolist()
            e = x.to("cpu", non_blocking=True)
            stream.synchronize()  # TPF106
            return b, d, e.sum()
        """,
    "another read waited": """
        def step(x: Tensor, y: Tensor):
            a = x.to("cpu", non_blocking=True)
            n = y.sum().item()  # TPF101
            return a.sum(), n
        """,
    "something unknown may have waited": """
        def step(x: Tensor, finish):
            a = x.to("cpu", non_blocking=True)
            finish()
            return a.sum()
        """,
    "handed on, viewed, or sent back": """
        class Cache:
            def offload_step(self, x: Tensor, y: Tensor):
                self.kept = x.to("cpu", non_blocking=True)
                view = self.kept[0].view(-1)
                y.copy_(self.kept, non_blocking=True)
                back = self.kept.to(y.device, non_blocking=True)
                return view, back, torch.zeros_like(self.kept), self.kept.shape
        """,
    "the array is looked at after the wait": """
        def step(x: Tensor):
            array = x.to("cpu", non_blocking=True).numpy()
            torch.cuda.synchronize()  # TPF106
            return array.sum()
        """,
    "a blocking copy": """
        def save_step(x: Tensor, later: bool):
            a = x.to("cpu")
            b = x.to("cpu", non_blocking=False)
            c = x.to("cpu", non_blocking=later)
            return a.sum(), b.sum(), c.sum()
        """,
}


def test_the_message_of_a_race_names_the_copy() -> None:
    found = findings(program(RACES["memory that is filled later"]))
    assert any("TPF504 `kept` is read before its copy has arrived" in one for one in found)


@table(RACES)
def test_copies_read_before_they_arrived(code: str) -> None:
    check(code, only=frozenset({"TPF504", "TPF101", "TPF106"}))


def test_nothing_is_reported_of_what_is_known_to_be_on_the_host() -> None:
    """The shapes and moves of 4xx and 5xx cost nothing there."""
    code = """
        def step(n: int, values: list[int]):
            x = torch.zeros(n, device="cpu")
            mask = x > 0
            y = x[mask], torch.nonzero(mask), torch.unique(x), x[[0, 1]], torch.linalg.inv(x)
            z = torch.from_numpy(np.ones(3)), torch.tensor(values), x.cpu().numpy()
            x[mask] = torch.ones(3)
            return y, z, torch.repeat_interleave(x, x.long()), x.to("cpu"), x.float().to(torch.long)
        """
    assert findings(program(code), ALL) == []


ACCELERATORS = {
    "a conditional expression": """
        DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

        def step(n: int):
            return torch.ones(n, device=DEVICE).item()  # TPF101
        """,
    "a torch.device of one": """
        PLACE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

        def step(n: int):
            return torch.ones(n).to(PLACE).item()  # TPF501, TPF101
        """,
    "assigned in branches": """
        def step(n: int, gpu: bool):
            where = "cpu"
            if gpu:
                where = "cuda"
            elif n > 3:
                where = "mps"
            return torch.ones(n, device=where).item()  # TPF101
        """,
    "the host alone": """
        DEVICE = "cpu"
        PLACE = torch.device("cpu")

        def step(n: int, gpu: bool):
            a = torch.ones(n, device=DEVICE).item()
            return a + torch.ones(n, device=PLACE).item() + torch.ones(n).to(DEVICE).item()
        """,
    "a batch before it is moved": """
        from torch.utils.data import DataLoader

        def train(loader: DataLoader, device: torch.device):
            for x, y in loader:
                count = x[x > 0].unique().item() + int(y.nonzero().sum())
                x = x.to(device)  # TPF503
                count += x.sum().item()  # TPF206
            return count
        """,
    "a default device": """
        torch.set_default_device("cuda")

        def step(n: int):
            x = torch.ones(n)
            return x[x > 0].sum().item()  # TPF402, TPF101
        """,
}


@table(ACCELERATORS)
def test_where_a_value_lies(code: str) -> None:
    check(code)
