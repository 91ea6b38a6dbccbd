"""Compiled code: what lies on the host, and what numpy makes, are values of the graph as well."""

from __future__ import annotations

from linting import ALL, COMPILED, check, table

BREAKS = {
    "branches on tensors of the host": """
        @torch.compile
        def f(x: Tensor, rate: float):
            p = torch.rand([])
            if p < rate:  # TPF603
                x = -x
            if torch.rand(1).item() < rate:  # TPF602
                x = x + 1
            return x if torch.zeros(3).any() else -x  # TPF603
        """,
    "reads of tensors of the host": """
        @torch.compile
        def f(x: Tensor):
            a = torch.tensor(3).item()  # TPF602
            b = torch.randperm(4).tolist()  # TPF602
            c = float(torch.zeros(()))  # TPF602
            d = torch.equal(torch.zeros(3), torch.zeros(3))  # TPF602
            e = str(torch.zeros(()))  # TPF602
            g = x.cpu().sum().item()  # TPF602
            return x * a * c
        """,
    "shapes of tensors of the host": """
        @torch.compile
        def f(x: Tensor):
            kept = torch.rand(4) > 0.5
            a = torch.rand(4)[kept]  # TPF604
            b = kept.nonzero()  # TPF604
            c = torch.rand(4).unique()  # TPF604
            d = torch.bincount(torch.arange(3))  # TPF604
            z = torch.zeros(4)
            z[kept] = 1
            return x + z
        """,
    "numpy": """
        @torch.compile
        def f(x: Tensor):
            n = np.random.rand(1).item()  # TPF602
            m = int(np.prod(x.shape))  # TPF602
            for i in range(np.prod(x.shape)):  # TPF602
                x = x + i
            if np.random.rand() > 0.5:  # TPF603
                x = -x
            if np.prod([1, 2]) > 1:  # TPF603
                x = -x
            return x * int(np.array([1, 2])[0])  # TPF602
        """,
    "numbers that numpy makes of numbers are known": """
        @torch.compile
        def f(x: Tensor):
            n = int(np.log2(x.shape[0]))
            m = int(np.ceil(x.shape[0] / 3) * 2)
            k = float(np.clip(3.2, 0, 1))
            return x * n * m * k / np.sqrt(64)
        """,
    "tensors for numbers": """
        @torch.compile
        def f(x: Tensor, t: Tensor):
            a = torch.zeros(x.argmax())  # TPF602
            b = x.view(x.argmax(), -1)  # TPF602
            c = torch.arange(x.argmax())  # TPF602
            d = torch.roll(x, x.argmax())  # TPF602
            e = torch.add(x, x, alpha=x.sum())  # TPF602
            g = x[x.argmax()]  # TPF602
            h = x.expand(x.argmax(), 4)  # TPF602
            j = F.pad(x, (0, x.argmax()))  # TPF602
            k = x.split([x.argmax(), x.argmax()])  # TPF602
            sizes = [one.sum() for one in (x, t)]
            m = x.split(sizes)  # TPF602
            return torch.full((3,), x.sum()) + torch.tensor([x.sum(), x.mean()]).sum()
        """,
    "numbers that literals hold are known": """
        @torch.compile
        def f(x: Tensor):
            n = torch.tensor(4)
            return x.view(-1, n) + torch.zeros(n) + x[torch.tensor(0)]
        """,
    "gradients": """
        @torch.compile
        def f(x: Tensor, batch: dict[str, Tensor], data):
            x.requires_grad_()  # TPF608
            batch["a"].requires_grad_(True)  # TPF608
            y = torch.zeros(3)
            y.requires_grad = True  # TPF608
            z = torch.zeros_like(x, requires_grad=True)  # TPF608
            data["x"].requires_grad_()  # TPF608
            data["x"].requires_grad = True  # TPF608
            data["x"].requires_grad_(False)
            data.freeze.requires_grad_(False)
            return x.sum()
        @torch.compile
        def g(x: Tensor):
            kept = x.detach().requires_grad_(True)  # TPF608
            unused = x.detach().requires_grad_(True)
            energy = (kept * kept).sum()
            return energy
        @torch.compile
        def h(x: Tensor):
            return x.detach().requires_grad_(True)  # TPF608
        @torch.compile
        def cut(x: Tensor):
            kept = x.detach().requires_grad_(True)
            return (kept * kept).sum().detach(), kept.shape
        class Net(nn.Module):
            def forward(self, x: Tensor):
                self.weight.requires_grad_(True)
                return x * self.weight
        net = torch.compile(Net())
        """,
    "libraries, layers, contexts": """
        import contextvars
        import scipy.sparse as sp
        import scipy.special
        import tqdm
        flag = contextvars.ContextVar("flag")
        @torch.compile
        def f(x: Tensor):
            a = sp.coo_matrix(np.zeros((2, 2)))  # TPF608
            b = scipy.special.expit(x.numpy())  # TPF608
            c = scipy.special.softmax(x.numpy())
            for i in tqdm.tqdm(range(3)):  # TPF608
                x = x + 1
            with torch.backends.cudnn.flags(enabled=False):  # TPF608
                x = x + 1
            layer = nn.Linear(4, 4)  # TPF608
            if flag.get():  # TPF608
                x = layer(x)
            return x + torch.nested.nested_tensor([x, x]).sum()  # TPF608
        """,
    "assertions": """
        @torch.compile
        def f(x: Tensor):
            assert x.sum() > 0, "a text"
            assert x.sum() > 0 and x.mean() > 0, "a text"  # TPF603, TPF603
            return "%s" % x.sum()  # TPF602
        """,
    "the host alone, uncompiled": """
        def f(x: Tensor, rate: float):
            p = torch.rand([])
            if p < rate:
                x = -x
            n = int(np.prod(x.shape))
            return x * torch.tensor(3).item() * n
        """,
    "the host alone, captured": """
        @torch.compile(fullgraph=True)
        def f(x: Tensor):
            return x * torch.tensor(3).item() + torch.rand(4).nonzero().sum()
        """,
}


@table(BREAKS)
def test_host_values_in_compiled_code(code: str) -> None:
    check(code, ALL, only=COMPILED)
