"""Loops over samples, positions and classes of a tensor: which could be one operation."""

from linting import ALL, HOT, check, findings, program, table

SAMPLES = {
    "stacked by position": """
        def crop(a, b):
            return a * b + 1

        def f(x: Tensor, b: Tensor):
            first = torch.stack([torch.mm(x[i], b[i]) for i in range(len(x))])  # TPF202
            second = torch.stack([crop(x[i], b[i]) for i in range(x.shape[0])])  # TPF202
            return first, second, [x[i] + 1 for i in range(x.size(0))]  # TPF202
        """,
    "a function of the project": """
        def normalised(image):
            return (image - image.mean()) / image.std()

        def f(images: Tensor):
            out = []
            for image in images:  # TPF201
                out.append(normalised(image))
            return torch.stack(out)
        """,
    "a layer": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 3)
                self.row = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

            def forward(self, images: Tensor):
                out = []
                for image in images:  # TPF201
                    out.append(self.row(self.layer(image)))
                return torch.stack(out)
        """,
    "a loss for each": """
        def f(logits: Tensor, target: Tensor):
            losses = []
            for i in range(logits.shape[0]):  # TPF202
                losses.append(F.cross_entropy(logits[i], target[i]))
            return torch.stack(losses).mean()
        """,
    "another dimension": """
        def f(x: Tensor, n: int):
            total, outs = 0, []
            for i in range(x.shape[-1]):  # TPF202
                total = total + x[..., i] ** 2
            for i in range(n):  # TPF202
                outs.append(x[:, i] * 2)
            return total, outs
        """,
    "items that are set": """
        def f(t: Tensor, n: int, other: Tensor):
            for i in range(1, n):  # TPF202
                t[i] += 1.5
            for i in range(1, len(other)):  # TPF202
                other[i] += other[i - 1]
            return t
        """,
    "windows of one width": """
        def f(x: Tensor, width: int):
            out = []
            for i in range(len(x)):  # TPF202
                out.append(x[i : i + width].mean() + x[i])
            return torch.stack(out)
        """,
}
CLASSES = {
    "a ratio for each": """
        def f(pred: Tensor, target: Tensor, classes: int):
            ratios = []
            for c in range(classes):  # TPF202
                inter = ((pred == c) & (target == c)).sum()
                ratios.append(inter / ((pred == c) | (target == c)).sum())
            return torch.stack(ratios)
        """,
    "a column for each": """
        def f(target: Tensor, classes: int):
            out = torch.zeros(target.shape[0], classes, device=target.device)
            for c in range(classes):  # TPF202
                out[:, c] = (target == c).float()
            return out
        """,
}
ROUNDS_APART = {
    "of different sizes": """
        def f(x: Tensor, lengths: list[int], mask: Tensor):
            out = []
            for i in range(len(x)):
                out.append(x[i][: lengths[i]].mean(0))
            for row, n in zip(x, lengths):
                out.append(row[:n].mean(0))
            for i in range(len(x)):
                out.append(x[i:].sum())
            return out
        """,
    "of sizes that other data hold": """
        def f(x: Tensor, sizes: Tensor, counts: list[int], out: Tensor):
            for i in range(len(counts)):
                n = counts[i]
                out[i, :n] = x[i, :n]
            return torch.cat([x[i, : sizes[i]] for i in range(len(sizes))])
        """,
    "of sizes made of the items of an inner loop": """
        def f(spans: list[list[tuple[float, float]]], length: int):
            out = torch.zeros(len(spans), length, device="cuda")
            for i in range(len(spans)):
                for span in spans[i]:
                    first = int(length * span[0])
                    last = int(length * span[1])
                    out[i][first:last] = 2.0
            return out
        """,
    "another layer for each": """
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(n)])

            def forward(self, x: Tensor):
                rows = [self.layers[i](row) for i, row in enumerate(x)]
                more = [layer(row) for row, layer in zip(x, self.layers)]
                return rows, more, [self.layers[i](x[i]) for i in range(len(x))]
        """,
    "what later rounds ask for": """
        def overlap(a, b):
            return torch.minimum(a, b).sum(-1)

        def f(boxes: Tensor, scores: Tensor):
            for i in torch.argsort(-scores):
                scores[overlap(boxes[i], boxes) > 0.5] = 0.0
                boxes = boxes * scores[i]
            return scores
        """,
    "of a list": """
        def f(x: list[Tensor], b: list[Tensor], t: Tensor):
            made = torch.cat([torch.mm(x[i], b[i]) for i in range(len(x))])
            return made, [t[i] * b[i] for i in range(t.shape[0])]
        """,
    "by a mask of each class": """
        def f(x: Tensor, labels: Tensor, classes: int):
            return torch.stack([x[labels == c].mean(0) for c in range(classes)])
        """,
    "a state that is handed on": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(3, 3)

            def forward(self, x: Tensor, h: Tensor):
                outs = []
                for t in range(x.shape[1]):
                    h = self.cell(x[:, t], h)
                    outs.append(h)
                for row in x:
                    h = self.cell(row, h)
                return torch.stack(outs, 1)
        """,
    "a state by arithmetic": """
        def f(x: Tensor, n: int, out: Tensor):
            h = x[:, 0]
            for i in range(n):
                h = h * 0.5 + x[:, i]
            for i in range(n):
                out[:, i] = (out * x[:, i]).sum()
            return h
        """,
    "a search": """
        def f(x: Tensor, n: int):
            for i in range(n):
                best = x[:, i].sum()
                if i > 3:
                    break
            return best
        """,
    "what a function keeps": """
        class Net(nn.Module):
            def keep(self, row):
                self.last = row * 2
                return self.last

            def forward(self, x: Tensor):
                return torch.stack([self.keep(x[i]) for i in range(len(x))])
        """,
    "what a function asks for": """
        def ranks(row):
            return torch.unique(row).sum()

        def f(x: Tensor):
            return torch.stack([ranks(x[i]) for i in range(len(x))])
        """,
    "calls of anything": """
        def f(x: Tensor, layers, n: int):
            for i in range(n):
                x = layers[i](x)
            return x, [layers(x[i]) for i in range(len(x))]
        """,
    "as good as written out": """
        def f(x: Tensor):
            return [x[:, i] * 2 for i in range(3)]
        """,
    "numbers and arrays": """
        def f(rows: list[int], pred: np.ndarray, n: int):
            sums = [sum(r == c for r in rows) for c in range(n)]
            return sums, [(pred == c).sum() / pred[c] for c in range(n)]
        """,
}
ONLY = frozenset(("TPF201", "TPF202"))


@table({**SAMPLES, **CLASSES})
def test_what_could_be_one_operation(code: str) -> None:
    check(code, HOT, only=ONLY)


@table(ROUNDS_APART)
def test_rounds_that_are_no_pieces_of_one_operation(code: str) -> None:
    check(code, ALL, only=ONLY)


def test_items_that_are_only_listed_are_one_unbind() -> None:
    code = """
        def f(x: Tensor):
            return [x[:, i] for i in range(x.shape[1])]{marker}
        """
    check(code.format(marker=""))
    check(code.format(marker="  # TPF202"), ALL)


def test_classes_are_compared_at_once() -> None:
    (told,) = findings(program(CLASSES["a ratio for each"]))
    assert "compare with torch.arange once, or use one_hot or bincount" in told


def test_an_attribute_that_something_opaque_made_is_opened_once() -> None:
    code = """
        class Net(nn.Module):
            def __init__(self, make):
                super().__init__()
                self.scale = torch.ones(make(3))

            def forward(self, x: Tensor):
                return torch.stack([row * self.scale for row in x])  # TPF201
        """
    check(code, only=ONLY)
