"""What torch itself promises: arguments that must be tensors, closures, states, scripted branches."""

from linting import ALL, HOT, check, table

from flake8_torchperf.linter import lint

PLAIN = "import torch\nfrom torch import Tensor, nn\n"


@table({
    "a comparison of what nobody knows": """
        def f(boxes, low):
            return torch.where(boxes.area >= low)[0]  # TPF401
        """,
    "the rows of an attribute": """
        def f(batch):
            return torch.nonzero(batch.labels), torch.unique(batch.ids)  # TPF401, TPF404
        """,
    "what comes of it is a tensor": """
        def f(batch):
            return torch.unique(batch.ids).tolist()  # TPF102, TPF404
        """,
    "three arguments choose, and wait for nothing": """
        def f(batch):
            return torch.where(batch.ids > 2, batch.ids, 0)
        """,
    "arguments that cannot be counted": """
        def f(batch):
            return torch.unique(*batch.ids)
        """,
    "a number may be meant": """
        def f(batch, n):
            return torch.repeat_interleave(batch.ids, n.count)
        """,
})  # fmt: skip
def test_arguments_that_must_be_tensors(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "called with gradients on": """
        class Search(torch.optim.Optimizer):
            @torch.no_grad()
            def step(self, closure=None):
                loss = None
                if closure is not None:
                    with torch.enable_grad():
                        loss = float(closure())  # TPF101
                return loss
        """,
    "wrapped, and handed on": """
        class Search(torch.optim.Optimizer):
            def step(self, closure):
                closure = torch.enable_grad()(closure)
                first = closure()
                if closure() > first:  # TPF301
                    return self.again(closure)
                return first

            def again(self, closure):
                return float(closure())  # TPF101
        """,
    "returned as it is": """
        class Search(torch.optim.Optimizer):
            def step(self, closure=None):
                return None if closure is None else closure()
        """,
    "annotated with a number": """
        from collections.abc import Callable

        class Search(torch.optim.Optimizer):
            def step(self, closure: Callable[[], float]):
                return float(closure())
        """,
    "no optimizer": """
        class Search:
            def step(self, closure):
                return float(closure())
        """,
})  # fmt: skip
def test_the_closure_of_an_optimizer_returns_the_loss(code):
    check(code, HOT, prelude=PLAIN)


@table({
    "a state that moves with its module": """
        class Base(nn.Module):
            def add_state(self, name, default):
                setattr(self, name, default)

        class Mean(Base):
            def __init__(self):
                super().__init__()
                self.add_state("total", torch.tensor(0.0))

            def compute(self):
                return int(self.total.item())  # TPF101
        """,
    "of anything else it stays on the host": """
        class Base:
            def add_state(self, name, default):
                setattr(self, name, default)

        class Mean(Base):
            def __init__(self):
                self.add_state("total", torch.tensor(0.0))

            def compute(self):
                return int(self.total.item())
        """,
})  # fmt: skip
def test_states_told_by_name(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "what only a scripted run assigns": """
        def scale(image: Tensor, low: int):
            if torch.jit.is_scripting():
                size = torch.tensor(image.shape, device=image.device)
            else:
                size = image.shape
            return min(low / size[0], low / size[1])
        """,
    "one way or another of tracing": """
        def scale(image: Tensor, low: int):
            if torch.jit.is_tracing():
                size = image.sum(dim=0)
            elif torch.jit.is_scripting():
                size = image.sum(dim=1)
            else:
                size = image.shape
            return max(low / size[0], low / size[1])
        """,
    "what only an eager run assigns": """
        def scale(image: Tensor, low: int):
            if not torch.jit.is_tracing():
                low = image.sum()
            return image * int(low)  # TPF101
        """,
    "a scripted run or another condition": """
        def scale(image: Tensor, exact: bool):
            size = 0
            if exact or torch.jit.is_scripting():
                size = image.sum()
            return image * int(size)  # TPF101
        """,
    "where the eager branch leaves, the other goes on": """
        def scale(image: Tensor):
            if not torch.jit.is_scripting():
                return image
            return image[0]
        """,
})  # fmt: skip
def test_branches_of_scripted_runs(code):
    check(code, HOT, prelude=PLAIN)


@table({
    "put together before": """
        def pick(x: Tensor, keep: Tensor):
            where = [slice(None)] * x.dim()
            where[0] = keep != 0
            x[tuple(where)] = x[tuple(where)] * 2  # TPF402, TPF403
        """,
    "slices alone": """
        def pick(x: Tensor, n: int):
            where = [slice(None)] * x.dim()
            where[0] = slice(0, n)
            return x[tuple(where)]
        """,
})  # fmt: skip
def test_masks_among_indices(code):
    check(code, HOT, prelude=PLAIN)


@table({
    "a list of the same length sets the pace": """
        def pad(images: list[Tensor], n: int):
            batch = images[0].new_zeros((n, 3))
            for i in range(batch.shape[0]):
                batch[i, : images[i].shape[0]].copy_(images[i])
            return batch
        """,
    "nothing else is indexed": """
        def shift(x: Tensor):
            for i in range(x.shape[0]):  # TPF202
                x[i] += 1
        """,
    "each parameter by itself": """
        @torch.no_grad()
        def decay(parameters: list[nn.Parameter]):
            for p in parameters:
                p.mul_(0.9)  # TPF204
        """,
    "more than a tensor operation for each": """
        @torch.no_grad()
        def decay(parameters: list[nn.Parameter], manifold):
            for p in parameters:
                p.copy_(manifold.project(p))
        """,
    "the way for those who do not want foreach": """
        @torch.no_grad()
        def decay(parameters: list[nn.Parameter], foreach: bool):
            if foreach:
                torch._foreach_mul_(parameters, 0.9)
            else:
                for p in parameters:
                    p.mul_(0.9)
        """,
    "once, when weights are read": """
        class Net(nn.Module):
            @torch.no_grad()
            def load_state_dict(self, state):
                for p, value in zip(self.parameters(), state):
                    p.copy_(value)
        """,
})  # fmt: skip
def test_loops_that_no_single_operation_replaces(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "told apart for a moment": """
        def check(lr: float | Tensor, foreach: bool):
            if isinstance(lr, Tensor):
                if foreach:
                    raise ValueError("no tensor with foreach")
            if lr < 0.0:
                raise ValueError("negative")
        """,
    "given by a path through the code": """
        def outcome(x: Tensor, full: bool):
            total = 0
            if full:
                total = x.sum()
            if total > 3:  # TPF301
                return 1
        """,
})  # fmt: skip
def test_what_a_declaration_allows_stays_open(code):
    check(code, HOT, prelude=PLAIN)


def test_a_wait_is_shown_where_its_source_is_linted(tmp_path):
    """Linting torch itself: a function in Python waits in its body, not where it is called."""
    functional = tmp_path / "torch" / "nn" / "functional.py"
    functional.parent.mkdir(parents=True)
    for folder in (functional.parent, functional.parent.parent):
        (folder / "__init__.py").write_text("")
    (tmp_path / "torch" / "_tensor.py").touch()
    functional.write_text(
        "import torch\n\ndef gaussian_nll_loss(input, target, var: torch.Tensor):\n"
        "    if torch.any(var < 0):\n        raise ValueError\n    return input\n"
    )
    caller = "import torch\nimport torch.nn.functional as F\n\ndef loss(x: torch.Tensor):\n"
    caller += "    return F.gaussian_nll_loss(x, x, x)\n"
    beside, elsewhere = functional.with_name("losses.py"), tmp_path / "losses.py"
    for path, codes in ((beside, []), (elsewhere, ["TPF404"])):
        path.write_text(caller)
        assert [f.code for f in lint(caller, str(path), ALL)] == codes
    body = lint(functional.read_text(), str(functional), ALL)
    assert [(f.line, f.code) for f in body] == [(4, "TPF301")]


def test_a_package_called_torch_is_not_torch(tmp_path):
    """A folder ``torch`` of somebody's namespace package: ``import torch`` means PyTorch."""
    folder = tmp_path / "text" / "torch" / "losses"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    code = (
        "import torch\nimport torch.nn.functional as F\nfrom text.torch.losses.sizes import n\n\n"
    )
    code += "def loss(x: torch.Tensor):\n    return F.softmax(x, dim=-1)[: n(x)]\n"
    (folder / "sizes.py").write_text("def n(x):\n    return x.sum(-1).max()\n")
    (folder / "loss.py").write_text(code)
    found = lint(code, str(folder / "loss.py"), ALL)
    assert [(f.line, f.code) for f in found] == [(6, "TPF107")]
    assert "n(x)" in found[0].message


def test_a_pool_that_is_asked_for_its_indices_returns_two():
    check(
        """
        class Pools(nn.Module):
            def __init__(self, flag):
                super().__init__()
                self.both = nn.MaxPool2d(2, return_indices=True)
                self.one = nn.MaxPool2d(2, return_indices=False)

            def forward(self, x: Tensor):
                y, i = self.both(x)
                z, j = self.one(x)  # TPF201
                if i.max() > 3:  # TPF301
                    return y
                return z
        """,
        ALL,
    )


def test_a_mask_that_is_moved_stays_one():
    check(
        """
        def f(x: Tensor, ids: Tensor, h, dtype):
            mask = ids.eq(3)
            a = x[mask.to(h.device)]  # TPF402
            b = x[mask.to(device=h)]  # TPF402
            return x[mask.to(h)], x[mask.to(dtype)], a, b
        """,
        ALL,
    )


def test_what_a_transform_of_a_distribution_gives():
    check(
        """
        from torch.distributions import AffineTransform, Transform
        from torch.distributions.transforms import identity_transform

        def f(x: Tensor, given: Transform | None):
            transform = identity_transform if given is None else given
            if transform.log_abs_det_jacobian(x, x).sum() > 3:  # TPF301
                return transform.inv(x).tolist()  # TPF102
            return int(AffineTransform(1, 2)(x)), transform.event_dim > 3  # TPF101
        """,
        ALL,
    )
