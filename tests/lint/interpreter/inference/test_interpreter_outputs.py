"""What a module of unknown class returns: a tensor, once it is asked for what only tensors answer."""

from dataclasses import replace

from linting import ALL, check, table

OUTPUTS = {
    "asked for a tensor's method": """
        def score(model: nn.Module, ids):
            best = model(ids).argmax(dim=-1).tolist()  # TPF102
            out = model(ids)
            if out.abs().max() > 1:  # TPF301
                return out
            first = model(ids)[0]
            return first.mean().item(), best  # TPF101
        """,
    "one that a module holds": """
        class Wrapped(nn.Module):
            def __init__(self, inner: nn.Module, layers: list[nn.Module]):
                super().__init__()
                self.inner = inner
                self.layers = nn.ModuleList(layers)

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                assert x.min() >= 0  # TPF303
                return self.inner(x).sum().item()  # TPF101
        """,
    "a tuple, a dict, an object of its own": """
        def score(model: nn.Module, ids):
            loss, logits = model(ids)
            if loss > 3:
                return loss
            out = model(ids)
            for key, value in out.items():
                print(key)
            print(out.get("loss"), out.loss.item(), out.pop())
            kept = model(ids).to("cpu")
            if kept:
                return float(kept)
            return [row for row in model(ids)], int(model(ids))  # TPF101
        """,
    "what is no module": """
        def score(model, ids, fn):
            return model(ids).mean().item(), np.abs(fn(ids).max().item())
        """,
}


@table(OUTPUTS)
def test_what_a_module_returns(code):
    check(code, ALL, only=frozenset({"TPF101", "TPF102", "TPF301", "TPF303"}))


UNPACKED = """
    def score(model: nn.Module, ids, known: tuple[float, float]):
        logits, loss = model(ids)
        if loss > 3:  # TPF301
            print("high")
        low, high = known
        if low > 3:
            print("low")
"""


def test_the_parts_of_an_output_are_assumed_as_the_whole_is():
    check(UNPACKED, replace(ALL, confidence="assumed"), only=frozenset({"TPF301"}))
    check(UNPACKED.replace("  # TPF301", ""), ALL, only=frozenset({"TPF301"}))


NUMBER = """
    def score(model: nn.Module, ids):
        logits, loss = model(ids)
        return float(loss)  # TPF101
"""


def test_what_becomes_a_number_is_a_tensor():
    """No tuple and no dict can be given to `float`."""
    check(NUMBER, ALL, only=frozenset({"TPF101"}))
