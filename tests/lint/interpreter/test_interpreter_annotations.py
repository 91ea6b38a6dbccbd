"""What a program says of its values: annotations, and how a value is used."""

from linting import ALL, check, table

ANNOTATIONS = {
    "Tensor": """
        def step(x: torch.Tensor, y: Tensor, p: nn.Parameter):
            return x.item(), y.item(), p.item()  # TPF101, TPF101, TPF101
        """,
    "the function that makes tensors, named for the class": """
        def step(x: torch.tensor):
            return x.item()  # TPF101
        """,
    "a variable that says what a module of any kind gave": """
        def step(model: nn.Module, batches: list[Tensor]):
            for batch in batches:
                out: Tensor = model(batch)
                if out > 3:  # TPF301
                    print(out.cpu())  # TPF102
                other = model(batch)
                if other > 3:
                    return other
        """,
    "Optional": """
        from typing import Optional

        def step(x: Optional[Tensor] = None):
            if x is not None:
                return x.item()  # TPF101
        """,
    "a bar with None": """
        def step(x: Tensor | None, y: None | Tensor = None):
            return x.item(), y.item()  # TPF101, TPF101
        """,
    "a union with a number is silent until it is narrowed": """
        from typing import Union

        def step(x: Union[Tensor, float]):
            y = x > 0 or math.sqrt(x)
            if isinstance(x, Tensor):
                return x.item()  # TPF101
            return y
        """,
    "list, List, Sequence, Iterable, tuple": """
        from collections.abc import Iterable, Sequence
        from typing import List, Tuple

        def step(a: list[Tensor], b: List[Tensor], c: Sequence[Tensor], d: tuple[Tensor, int],
                 e: Tuple[Tensor, ...], f: Iterable[Tensor]):
            a[0].item()  # TPF101
            b[0].item()  # TPF101
            c[0].item()  # TPF101
            d[0].item() + float(d[1])  # TPF101
            e[5].item()  # TPF101
            for x in f:
                x.item()  # TPF101
        """,
    "dict, Dict, Mapping": """
        from collections.abc import Mapping
        from typing import Dict

        def step(a: dict[str, Tensor], b: Dict[str, Tensor], c: Mapping[str, list[Tensor]]):
            a["x"].item()  # TPF101
            b["x"].item()  # TPF101
            c["x"][0].item()  # TPF101
        """,
    "a string": """
        def step(x: "Tensor", y: "torch.Tensor | None", z: "list[Tensor]", n: "int"):
            return x.item(), y.item(), z[0].item(), float(n)  # TPF101, TPF101, TPF101
        """,
    "part of a string": """
        from typing import Optional

        def step(x: Optional["torch.Tensor"]):
            return x.item()  # TPF101
        """,
    "numbers, strings, arrays": """
        def step(a: float, b: int, c: str, d: np.ndarray, e: bool, t: Tensor):
            if a > b or e or d.sum() > 3:
                return float(a), int(c), d.item(), d.tolist()
        """,
    "a callable": """
        from collections.abc import Callable

        def step(f: Callable[[Tensor], Tensor], g: Callable[[Tensor], float], x: Tensor):
            if g(x) > 3:
                return f(x).item()  # TPF101
        """,
    "jaxtyping": """
        from jaxtyping import Bool, Float, Int

        def step(x: Float[Tensor, "batch dim"], m: Bool[torch.Tensor, "batch"],
                 a: Float[np.ndarray, "batch"]):
            if a.sum() > 3:
                return x.tolist()  # TPF102
            return bool(m.any())  # TPF101
        """,
    "a string in jaxtyping": """
        from jaxtyping import Float

        def step(x: "Float[Tensor, 'batch dim']"):
            return x.tolist()  # TPF102
        """,
    "the legacy classes": """
        def step(x: torch.FloatTensor, y: torch.cuda.LongTensor, z: torch.LongTensor):
            return y.tolist()  # TPF102
        """,
    "Annotated": """
        from typing import Annotated

        def step(x: Annotated[Tensor, "a batch"], n: Annotated[int, "a size"]):
            return x.item() + float(n)  # TPF101
        """,
    "Final and ClassVar": """
        from typing import ClassVar, Final

        class Net(nn.Module):
            table: ClassVar[Tensor]
            limit: Final[float] = 3.0

            def forward(self, x: Tensor):
                if self.limit > 2:
                    return self.table.item()  # TPF101
        """,
    "Literal": """
        from typing import Literal

        def step(x: Tensor, mode: Literal["sum", "mean"]):
            if mode == "sum":
                return x.sum()
            return x.mean()
        """,
    "Any says nothing": """
        from typing import Any

        def step(x: Any):
            return float(x)
        """,
    "star arguments": """
        def step(*xs: Tensor, **ys: Tensor):
            for x in xs:
                x.item()  # TPF101
            return ys["a"].item()  # TPF101
        """,
    "a default of None": """
        def step(x: Tensor = None):
            if x is None:
                return 0
            return x.item()  # TPF101
        """,
    "a default that is a number": """
        def step(x: Tensor, p=0.5, n=3):
            if p > 0.1 and n:
                return float(p)
            return x
        """,
    "postponed evaluation": """
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from torch import Tensor as Ten

        def step(x: "Ten"):
            return x.item()  # TPF101
        """,
    "a return annotation": """
        def load(n) -> tuple[Tensor, dict[str, Tensor], int]: ...

        def step(n):
            x, extra, k = load(n)
            return x.item() + extra["y"].item() + float(k)  # TPF101, TPF101
        """,
    "Self": """
        from typing import Self

        class Box:
            x: Tensor

            def fill(self) -> Self: ...

            def step(self):
                return self.fill().x.item()  # TPF101
        """,
    "a method that numbers lack tells which of a declared union it is": """
        def step(x: Tensor | float):
            if x > 0:
                return 0
            if (2 * x + 1 > 0).all():  # TPF301
                return (-x).item()  # TPF101
        """,
    "elements of a declared union": """
        def step(shape: tuple[int, ...] | Tensor):
            return [range(n) for n in shape]
        """,
}


@table(ANNOTATIONS)
def test_annotations(code: str) -> None:
    check(code)


ALIASES = {
    "an alias": """
        Batch = dict[str, Tensor]

        def step(batch: Batch):
            return batch["x"].item()  # TPF101
        """,
    "TypeAlias": """
        from typing import TypeAlias

        Pair: TypeAlias = "tuple[Tensor, int]"

        def step(pair: Pair):
            return pair[0].item() + float(pair[1])  # TPF101
        """,
    "NewType": """
        from typing import NewType

        Mask = NewType("Mask", Tensor)

        def step(mask: Mask):
            return mask.item()  # TPF101
        """,
    "a bound TypeVar": """
        from typing import TypeVar

        T = TypeVar("T", bound=Tensor)

        def step(x: T) -> T:
            x.item()  # TPF101
            return x
        """,
    "a constrained TypeVar": """
        from typing import TypeVar

        T = TypeVar("T", Tensor, np.ndarray)

        def step(x: T) -> T:
            return x.sum()
        """,
    "a free TypeVar": """
        from typing import TypeVar

        T = TypeVar("T")

        def step(x: T) -> T:
            float(x)
            return x
        """,
    "an alias of a union": """
        from typing import Union

        Number = Union[int, float]
        MaybeTensor = Union[Tensor, None]

        def step(x: MaybeTensor, n: Number):
            if n > 3:
                return x.item()  # TPF101
        """,
    "an alias within an alias": """
        State = dict[str, Tensor]
        States = list[State]

        def step(states: States):
            return states[0]["x"].item()  # TPF101
        """,
    "a subclass of Tensor": """
        class Mask(torch.Tensor):
            pass

        def step(x: Mask):
            return x.item()  # TPF101
        """,
}


@table(ALIASES)
def test_aliases(code: str) -> None:
    check(code)


EVIDENCE = {
    "requires_grad": """
        def step(x):
            if x.requires_grad:
                return x.item()  # TPF101
        """,
    "backward": """
        def step(loss):
            loss.backward()
            return loss.item()  # TPF101
        """,
    "detach": """
        def step(loss):
            return loss.detach().item()  # TPF101
        """,
    "passed to a torch function": """
        def step(xs):
            for x in xs:
                if torch.isinf(x).any():  # TPF203
                    return True
        """,
    "what holds tensors may be a list": """
        def step(grads, inv_scale):
            for grad in grads:
                for tensor in grad:
                    if torch.isinf(tensor).any().item() is True:  # TPF203
                        break
                    else:
                        tensor.data *= 2
        """,
    "device with dtype": """
        def step(x, y):
            y = y.to(device=x.device, dtype=x.dtype)
            return x.item()  # TPF101
        """,
    "methods that numpy has too are none": """
        def step(x):
            y = np.log(x.reshape(-1).sum())
            return float(y), x.shape, x.tolist()
        """,
    "a device alone is none": """
        def step(model):
            if model.device == "cuda":
                return float(model)
        """,
    "a name that says tensor is none": """
        def step(tensor, x_tensor):
            return float(tensor) + float(x_tensor)
        """,
    "an operation with a tensor": """
        def step(x: Tensor, w):
            return (x * w).item() + float(w)  # TPF101
        """,
}


@table(EVIDENCE)
def test_use_as_evidence(code: str) -> None:
    check(code)


def test_a_declared_name_is_none_until_another_value_is_assigned() -> None:
    check(
        """
        def step(x: Tensor, n: int, load):
            idx: Tensor | None = None
            best: Tensor | None = None
            for k in range(n):
                z = torch.where(x[:, k] > 0)[0]  # TPF401
                idx = z if idx is None else idx[z]
            best = load(n)
            if best is not None and best.max() > 3:  # TPF301
                return best
            return x[idx[0]]  # TPF107
        """,
        ALL,
        only=frozenset(("TPF107", "TPF301", "TPF401", "TPF501", "TPF502", "TPF503")),
    )
