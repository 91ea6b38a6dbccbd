"""What a value is said to be, and what the code asks of it: which of the two is believed."""

from __future__ import annotations

from linting import ALL, check, table


@table({
    "a number that is asked whether it is a tensor": """
        def f(factor: int):
            if isinstance(factor, torch.Tensor):
                factor = factor.cpu().item()  # TPF102
            return factor
        """,
    "an array that is": """
        def f(x: np.ndarray):
            if isinstance(x, torch.Tensor):
                return x.tolist()  # TPF102
            return x.tolist()
        """,
    "a number that the code itself made": """
        def f(x: Tensor):
            n = len(x)
            if isinstance(n, torch.Tensor):
                return n.item()
            return n
        """,
    "what is let pass as of another class": """
        def f(specs):
            first = specs[0]
            for spec in specs:
                if not isinstance(spec, first.__class__):
                    raise TypeError
                if spec.device != first.device or spec.dtype != first.dtype:
                    raise ValueError
                if spec == first:
                    return spec
        """,
    "what is asserted to be of another class": """
        def f(spec, other, Spec):
            assert isinstance(spec, Spec)
            if spec.device == other and spec.dtype and spec == other:
                return spec
        """,
    "a list stays a list of tensors": """
        def f(parts):
            if not isinstance(parts, (list, tuple)):
                raise TypeError
            whole = torch.cat(parts)
            return parts[0].item(), whole  # TPF101
        """,
    "a test that lets others pass settles nothing": """
        def f(x, Spec):
            if not isinstance(x, Spec):
                print("no spec")
            if x.unsqueeze(0) > 3:  # TPF301
                return x
        """,
})  # fmt: skip
def test_classes_asked_for(code):
    check(code, ALL)


@table({
    "a size has a number of elements too": """
        def f(shape, n):
            first = -shape[:2].numel()
            whole = (n // first, *shape)
            return torch.Size(whole).numel()
        """,
    "a tensor that is not unpacked": """
        def f(x, limit):
            if x.numel() > 1 and x > limit:  # TPF301
                return x
        """,
    "a tensor that is": """
        def f(x, g):
            g(*x.unsqueeze(0))  # TPF201
            return x.unsqueeze(0), x.numel()
        """,
})  # fmt: skip
def test_sizes_are_no_tensors(code):
    check(code, ALL)


@table({
    "modules in a row that give a pair": """
        class Net(nn.Module):
            def __init__(self, split):
                super().__init__()
                self.both = nn.Sequential(nn.Linear(3, 4), split)

            def forward(self, x: Tensor):
                mean, scale = self.both(x)
                return mean
        """,
    "a tensor with which something was computed": """
        class Net(nn.Module):
            def __init__(self, split):
                super().__init__()
                self.both = nn.Sequential(nn.Linear(3, 4), split)

            def forward(self, x: Tensor):
                mean, scale = self.both(x) + 1  # TPF201
                return mean
        """,
})  # fmt: skip
def test_what_is_unpacked(code):
    check(code, ALL)


def test_the_bias_of_a_recurrent_layer_says_whether_there_is_one():
    check(
        """
        class Rows(nn.LSTM):
            def part(self, x: Tensor):
                return x if self.bias else -x

        class Line(nn.Linear):
            def part(self, x: Tensor):
                return x if self.bias > 0 else -x  # TPF301
        """,
        ALL,
    )


def test_a_test_of_its_class_makes_no_number_a_tensor_after_it():
    check(
        """
        def f(x: Tensor, decay: float, flag: bool):
            for i in range(3):
                if decay != 0:
                    if flag and isinstance(decay, Tensor):
                        x = x + decay.squeeze()
                    x = x.add(x, alpha=decay)
            return x
        """,
        ALL,
    )


def test_what_a_call_gives_is_a_number_in_the_callee_too():
    check(
        """
        def plain(x: float | Tensor):
            if isinstance(x, Tensor) and x.dim() != 0:
                return x.squeeze()
            return x

        def f(x: Tensor, rate: float):
            rate = plain(rate)
            return x.add(x, alpha=rate)
        """,
        ALL,
    )


def test_a_dict_declared_to_hold_tensors_holds_a_number_that_the_body_puts_in():
    check(
        """
        def options(x: Tensor, factor: int, make) -> dict[str, Tensor]:
            return {"factor": factor, "scale": x.sum(), "other": make()}

        def f(x: Tensor, make):
            given = options(x, 3, make)
            if given["scale"] > 3:  # TPF301
                return x[:: given["factor"]]
            return int(given["other"])  # TPF101
        """,
        ALL,
    )
