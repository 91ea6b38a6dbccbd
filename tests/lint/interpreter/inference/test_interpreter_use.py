"""Use as evidence: what a function does with a value tells whether it is a tensor or a mask."""

from __future__ import annotations

from dataclasses import replace

from linting import ALL, check, findings, program, table

PLAIN = "import torch\n"
WITH_NUMPY = "import numpy as np\nimport torch\n"


@table({
    "a method that only tensors have": """
        def f(make):
            return make().unsqueeze(0).item()  # TPF101
        """,
    "a method that, called bare, only tensors have": """
        def f(make):
            return float(make().sqrt())  # TPF101
        """,
    "with an argument others have it too": """
        def f(layer, x):
            return float(layer.relu(x))
        """,
    "a cast that modules have too, asked for a reduction": """
        def f(x):
            return int(x.float().sum())  # TPF101
        """,
    "a copy that modules have too, made an array": """
        def f(make):
            for i in range(3):
                make(i).cpu().numpy()  # TPF102
        """,
    "a module moved tells nothing": """
        def f(model):
            return float(model.cpu())
        """,
    "torch's name for an axis": """
        def f(x):
            return x.mean(dim=0).tolist()  # TPF102
        """,
    "an axis by name is another library's": """
        def f(x):
            return x.mean(dim="time").tolist()
        """,
    "a clone in torch's words": """
        def f(x):
            return float(x.clone(memory_format=torch.contiguous_format))  # TPF101
        """,
    "a plain copy is anyone's": """
        def f(x):
            return float(x.clone())
        """,
    "a slice among several indices": """
        def f(logits):
            return logits[:, -1].argmax(-1).item()  # TPF101
        """,
    "of what a call gives": """
        def f(model, ids):
            last = model(ids)[:, -1]
            return last.item()  # TPF101
        """,
    "a slice alone, a key of several parts": """
        def f(names, table):
            return names[1:].total() + table["a", 0].item()
        """,
    "item and tolist, where nothing else answers so": """
        def f(values, ids):
            return sum(v.item() for v in values), ids.tolist()  # TPF101, TPF102
        """,
    "numpy's word for a dimension": """
        def f(x):
            return x.max(axis=0).tolist()
        """,
})  # fmt: skip
def test_methods(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "a name that is asked later": """
        def f(a, b):
            d = a - b
            if d > 0:  # TPF301
                return d.rsqrt()
        """,
    "a part of what was unpacked": """
        def f(pairs):
            a, b = pairs
            if a > 0:
                return b.unsqueeze(0)
            if b > 0:  # TPF301
                return b
        """,
    "what is assigned in both branches": """
        def f(make, flag):
            if flag:
                x = make(1)
            else:
                x = make(2)
            y = float(x)  # TPF101
            return x.masked_fill(x.isnan(), y)
        """,
    "another value of the same name tells nothing": """
        def f(make):
            x = make()
            y = float(x)
            x = torch.zeros(y)
            return x.unsqueeze(0)
        """,
    "passed where torch takes tensors only": """
        def f(make):
            x = make()
            y = float(x)  # TPF101
            return torch.isinf(x), y
        """,
    "concatenated": """
        def f(pieces):
            first = pieces[0]
            return float(first), torch.cat(pieces)  # TPF101
        """,
    "a loop's variable": """
        def f(rows):
            for row in rows:
                if row > 0:  # TPF301
                    row.mul_(2)
        """,
    "a comprehension's variable": """
        def f(rows):
            return [float(row) for row in rows if row.requires_grad]  # TPF101
        """,
    "where its type is asked for, it may be anything": """
        def f(x):
            if isinstance(x, torch.Tensor):
                x = x.detach()
            return float(x)
        """,
    "in the same expression as well": """
        def f(x):
            y = x.detach() if torch.is_tensor(x) else x
            return float(x)
        """,
    "where an attribute may be missing": """
        def f(x):
            try:
                x.unsqueeze(0)
            except AttributeError:
                pass
            return float(x)
        """,
    "what is given by position has each its own type": """
        def f(*args):
            x = args[0].unsqueeze(0)
            return x, float(args[1])
        """,
    "what no tensor has": """
        def f(x):
            if x.size(0) > 2:
                x.rebalance()
            return float(x)
        """,
    "what no tensor's inverse has": """
        def f(op, rhs):
            if op.size(-1) > 2:
                return op.cholesky().half_solve(rhs)
        """,
})  # fmt: skip
def test_what_is_done_later_or_elsewhere(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "a comparison indexes a tensor": """
        def f(x: torch.Tensor, low, high):
            keep = low < high
            return x[keep]  # TPF402
        """,
    "its inverse, its conjunction": """
        def f(x: torch.Tensor, a, b):
            return x[~(a > 0) & (b < 1)]  # TPF402
        """,
    "a comparison is asked whether it holds anywhere": """
        def f(p, q):
            if (p.count < q.count).any():  # TPF301
                return 1
        """,
    "products of masks": """
        def f(x: torch.Tensor):
            return x[(x > 0) * (x < 1)]  # TPF402
        """,
    "the inverse of a parameter as an index": """
        def f(x: torch.Tensor, skip):
            return x[~skip], x[skip]  # TPF402, TPF402
        """,
    "an unknown value indexed by a mask": """
        def f(values, x: torch.Tensor):
            return values[x > 0]  # TPF402
        """,
    "a name asked whether it holds anywhere": """
        def f(x, support):
            bad = support(x)
            if bad.any():  # TPF301
                return x[bad]  # TPF402
        """,
    "numbers compared choose no rows": """
        def f(rows, n):
            big = n > 3
            if big:
                return rows[n]
        """,
    "strings compared": """
        def f(x: torch.Tensor, mode):
            return x[int(mode == "train")]
        """,
})  # fmt: skip
def test_comparisons_are_masks(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "item": """
        def f(values):
            return sum(v.item() for v in values)
        """,
    "any": """
        def f(a, b: "np.ndarray"):
            if (a > b).any():
                return 1
        """,
    "a comparison as an index": """
        def f(a):
            return a[a > 0]
        """,
    "a slice among several indices": """
        def f(a):
            return a[:, -1].item()
        """,
    "torch's own words tell all the same": """
        def f(a):
            return np.sqrt(a.unsqueeze(0).item())  # TPF101
        """,
})  # fmt: skip
def test_a_function_that_knows_other_arrays(code):
    check(code, ALL, prelude=WITH_NUMPY)


def test_a_module_without_torch_is_left_alone():
    code = "def f(values):  # for torch\n    return [v.item() for v in values]\n"
    assert findings(code, ALL) == []


def test_an_inverse_as_an_index_tells_nothing_in_a_module_of_arrays():
    code = "def f(found, crowd):  # of torch\n    kept = found[~crowd]\n    return 1 if kept[0] else 0\n"
    assert findings(f"import numpy as np\n\n\n{code}", ALL) == []
    assert findings(f"import torch\n\n\n{code}", ALL) != []


@table({
    "an autograd function is given its context": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, flag, x):
                if flag:
                    x = x * 2
                return x

            @staticmethod
            def backward(ctx, grad):
                return Scale.apply(False, grad.unsqueeze(-1))
        """,
    "and none where it is set up apart": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(x, flag):
                return x * 2

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

        def f(x: torch.Tensor):
            return Scale.apply(x, True).item()  # TPF101
        """,
    "nothing is known of the places after a star": """
        def inner(*parts):
            return parts

        def outer(first, second, third):
            return float(second), float(third)

        def f(xs, y: torch.Tensor):
            return outer(*xs, y)
        """,
    "a lambda is called with tensors": """
        def each(apply, xs: list[torch.Tensor]):
            return [apply(x) for x in xs]

        def f(xs: list[torch.Tensor]):
            return each(lambda t: t.cpu(), xs), each(lambda t: t.sum(), xs)  # TPF102
        """,
    "a step of torch's behind an underscore": """
        def f(x: torch.Tensor):
            if not torch._is_all_true(x > 0):  # TPF301
                raise ValueError
            return torch._foreach_norm([x])[0].item()  # TPF101
        """,
    "broadcast together, each keeps its dtype": """
        def f(rate: torch.Tensor, value: torch.Tensor):
            rate, value, some = torch.broadcast_tensors(rate, value, value > 0)
            return rate[some].sum() + rate[value]  # TPF402
        """,
    "a tensor assigned through a mask": """
        def f(x: torch.Tensor, out, count):
            near = x.abs() < 1
            out[near] = torch.logsumexp(x, 0)  # TPF403
            count[near] = 1
        """,
    "the largest and the smallest": """
        def f(x, y, limit):
            if x.min() + limit < 1 or float(y.argmax()) > limit:  # TPF301, TPF101
                return max(limit.max(3), 2)
        """,
    "a size made of a count on the device": """
        def f(x: torch.Tensor, mask: torch.Tensor):
            return torch.Size((*x.shape[:-1], torch.count_nonzero(mask)))  # TPF107
        """,
    "the parts of a sparse tensor": """
        def f(x: torch.Tensor):
            return float(x._values()), int(x._nnz())  # TPF101
        """,
})  # fmt: skip
def test_calls(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "a number or a tensor, by the path taken": """
        def f(x: torch.Tensor, scale: float, flag):
            t = x.max() if flag else scale
            x.add_(x, alpha=t)  # TPF107
        """,
    "a number or a tensor, as a declaration allows": """
        def f(x: torch.Tensor, t: float | torch.Tensor):
            x.add_(x, alpha=t)
        """,
    "a quick no, or a tensor": """
        def empty(x):
            if x.ndim == 0:
                return x.ndim > 1
            return x.sum() == 0

        def f(x: torch.Tensor):
            if empty(x):
                return None
        """,
    "what only a traced run returns": """
        def value(x):
            if not torch.jit.is_scripting() and torch.compiler.is_compiling():
                return x
            return 1.0

        def f(x: torch.Tensor):
            return float(value(x))
        """,
    "each branch of what is formatted": """
        def f(x: torch.Tensor, flag):
            return f"{x if flag else 'none'}"  # TPF104
        """,
    "a tensor class asks its base for its text": """
        class Mine(torch.Tensor):
            def __repr__(self):
                return "mine " + super().__repr__()  # TPF104
        """,
    "lengths of a packed sequence, or none": """
        def f(x: torch.Tensor, batch_sizes: torch.Tensor | None):
            return int(batch_sizes[0])
        """,
    "rows unpacked are no numbers": """
        def f(x: torch.Tensor, points: torch.LongTensor):
            i, j = points.flip(0)  # TPF201
            return x[i, j], x[points[0]]
        """,
    "the next row of what the loop counts": """
        def f(x: torch.Tensor, order: torch.LongTensor):
            for i in range(len(order)):  # TPF202
                x[order[i]].zero_()  # TPF107
        """,
})  # fmt: skip
def test_paths_and_ranks(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "another library works on the host": """
        def step(x: torch.Tensor, i):
            y = ndimage.spread(x.cpu().numpy() * 2)  # TPF102
            return y, torch.save(x.cpu(), "f")  # TPF102
        """,
    "in a loop as well, but there they can be collected": """
        def f(xs: list[torch.Tensor]):
            found = []
            for x in xs:
                found.append(ndimage.spread(x.cpu().numpy()))  # TPF102
            return found
        """,
    "the caller asks for the copy": """
        def step(x: torch.Tensor, to_cpu, cpu_offload):
            if to_cpu:
                x = x.cpu()
            return x.cpu() if not cpu_offload else x  # TPF102
        """,
    "a generator's state lies on the host": """
        def f(state):
            torch.set_rng_state(state)
            return state.cpu()
        """,
    "a dict has values too": """
        class Loss(torch.nn.Module):
            def forward(self, outputs, targets):
                for value in outputs.values():
                    pass
                if "extra" in outputs:
                    return outputs["extra"]
        """,
    "the type of a comprehension's variable": """
        def f(params):
            return {k: str(v) if hasattr(v, "ndim") and v.ndim > 1 else v for k, v in params}
        """,
})  # fmt: skip
def test_wanted_copies_and_other_types(code):
    check(code, prelude="import torch\nfrom scipy import ndimage\n")


GROWTH = """
    def f(pieces, extra, flag):
        out = None
        for piece in pieces:
            if flag:
                {first}
                if extra is not None:
                    out = torch.cat([out, piece])
        return out
    """


def test_a_tensor_made_anew_each_round_does_not_grow():
    only = frozenset({"TPF205"})
    check(GROWTH.format(first="out = extra"), ALL, prelude=PLAIN, only=only)
    grows = GROWTH.replace("[out, piece])", "[out, piece])  # TPF205")
    check(grows.format(first="piece = extra"), ALL, prelude=PLAIN, only=only)


IN_BRANCHES = """
    def f(kinds: list[int], pieces: Tensor):
        out = pieces
        for kind in kinds:
            if kind == 0:
                mask = pieces > kind
                mask = torch.stack([mask, mask])
            elif kind == 1:
                mask = pieces < kind
                mask = torch.stack([mask, mask])
            elif kind == 2:
                out = torch.cat([out, pieces])  # TPF205
        return out
    """


def test_a_tensor_made_anew_in_one_branch_of_several_does_not_grow():
    check(IN_BRANCHES, ALL, only=frozenset({"TPF205"}))


def test_a_raise_behind_the_colon_gets_the_same_advice():
    one = "def f(t: torch.Tensor):\n    if t.any(): raise ValueError\n"
    two = "def f(t: torch.Tensor):\n    if t.any():\n        raise ValueError\n"
    first, second = (findings(program(code), ALL) for code in (one, two))
    assert first == second
    assert "torch._assert_async" in first[0]


NESTED = """
    def f(net, x, pairs):
        out = net(x)
        if pairs:
            logits, (h, c) = out
        for row in out:
            int(row){marker}
        return out[:, -1]
    """


def test_what_is_unpacked_into_a_nested_tuple_is_no_tensor():
    only = frozenset({"TPF101"})
    check(NESTED.format(marker=""), ALL, prelude=PLAIN, only=only)
    plain = NESTED.replace("logits, (h, c) = out", "logits, rest = out")
    check(plain.format(marker="  # TPF101"), ALL, prelude=PLAIN, only=only)


READ = """
    def evaluate(model, loader, criterion):
        total = 0.0
        {context}
            for x, y in loader:
                loss = criterion(model(x), y)
                total += loss.item(){marker}
        return {result}
    """


@table({
    "a function that speaks of torch": "with torch.no_grad():",
    "of torch in another way": "if torch.is_grad_enabled():",
})  # fmt: skip
def test_beside_arrays_a_read_tells_where_torch_is_spoken_of(code):
    told = READ.format(context=code, marker="  # TPF206", result="total")
    check(told, ALL, prelude=WITH_NUMPY)
    of_arrays = READ.format(context=code, marker="", result="np.mean(total)")
    check(of_arrays, ALL, prelude=WITH_NUMPY)
    silent = READ.format(context="if model:", marker="", result="total")
    check(silent, ALL, prelude=WITH_NUMPY)


def test_beside_arrays_a_read_is_assumed_to_be_of_a_tensor():
    code = READ.format(context="if model:", marker="  # TPF206", result="np.mean(total)")
    check(code, replace(ALL, confidence="assumed"), prelude=WITH_NUMPY)
    described = READ.format(context="with torch.no_grad():", marker="", result="total")
    source = program(described, WITH_NUMPY)
    (told,) = findings(source, replace(ALL, explain=True))
    assert "`loss`: `.item(...)` is called" in told
