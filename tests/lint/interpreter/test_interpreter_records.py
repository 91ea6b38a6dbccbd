"""Named tuples and typed dicts, however they are declared, and what a function is given by them."""

from linting import ALL, check, table

RECORDS = {
    "a named tuple made by a call": """
        from typing import NamedTuple

        Out = NamedTuple("Out", [("loss", Tensor), ("n", int)])

        def step(out: Out):
            if out.n > 3:
                return out.loss.item()  # TPF101
        """,
    "one without types keeps what it is given": """
        from collections import namedtuple

        Out = namedtuple("Out", "loss n")

        def step(x: Tensor):
            out = Out(x.sum(), n=3)
            if out.n > 3:
                return out.loss.item()  # TPF101
        """,
    "a subclass of one made by a call": """
        from collections import namedtuple
        from typing import NamedTuple

        class Pair(namedtuple("Pair", ["loss", "n"])):
            __slots__ = ()

        class Out(NamedTuple("Out", [("loss", Tensor), ("n", int)])):
            def doubled(self):
                return self.loss * 2

        def step(out: Out, x: Tensor):
            if out.n > 3 or Pair(x, 3).n > 2:
                return out.doubled().item(), Pair(x, 3).loss.item()  # TPF101, TPF101
        """,
    "methods and properties of a named tuple": """
        from typing import NamedTuple

        class Out(NamedTuple):
            loss: Tensor
            n: int = 0

            @property
            def mean(self):
                return self.loss / self.n

            def bad(self):
                if self.n > 3:
                    return self.loss.isnan().any()

            def show(self):
                print(self.loss)  # TPF104

        def step(out: Out):
            if out.bad():  # TPF301
                return out.mean.item()  # TPF101
        """,
    "a typed dict made by a call": """
        from typing import TypedDict

        Batch = TypedDict("Batch", {"ids": Tensor, "n": int}, total=False)

        def step(batch: Batch):
            if batch["n"] > 3:
                return batch["ids"].tolist()  # TPF102
        """,
    "a typed dict with a base": """
        from typing import TypedDict

        class Base(TypedDict):
            ids: Tensor

        class Batch(Base, total=False):
            n: int

        def step(batch: Batch):
            if batch["n"] > 3:
                return batch["ids"].tolist()  # TPF102
        """,
    "a typed dict that is made": """
        from typing import TypedDict

        class Batch(TypedDict):
            ids: Tensor
            n: int

        def step(x):
            batch = Batch(ids=x, n=3)
            if batch["n"] > 3:
                return batch["ids"].tolist()  # TPF102
        """,
    "keywords by a typed dict": """
        from typing import TypedDict, Unpack

        class Options(TypedDict):
            mask: Tensor
            n: int

        def step(**options: Unpack[Options]):
            if options["n"] > 3:
                return options["mask"].sum().item()  # TPF101
        """,
}


@table(RECORDS)
def test_records(code: str) -> None:
    check(code, ALL)
