"""Parameters that say nothing of themselves: what they are passed to, and what is asked later."""

from linting import ALL, check


def test_a_parameter_is_what_the_functions_take_that_it_is_passed_to():
    check(
        """
        def overlap(a, b):
            return torch.max(a[:, None, :2], b[:, :2])

        def declared(n: int, t: torch.Tensor):
            return t

        def checked(a, b, c, d, e, f: np.ndarray | None = None):
            if not (a >= 0).all():  # TPF301
                raise ValueError
            if (b >= 0).all():  # TPF301
                return 1
            if (c >= 0).all():
                return 2
            if (d >= 0).any():
                return 3
            if isinstance(e, torch.Tensor):
                declared(1, e)
            if (e >= 0).all():
                return 4
            return overlap(a, b), declared(c, t=[d])

        class Loss:
            def part(self, x: torch.Tensor, *rest):
                return x

            @staticmethod
            def scaled(x: torch.Tensor):
                return x

            def whole(self, x, y, z, w: np.ndarray | None = None):
                if x.max() > 1:  # TPF301
                    return 1
                if y.max() > 1:  # TPF301
                    return 2
                if z.max() > 1:
                    return 3
                return self.part(x, z), self.scaled(y)
        """,
        ALL,
        prelude="import numpy as np\nimport torch\n",
    )


def test_what_a_convention_takes_for_a_tensor_a_later_use_confirms():
    check(
        """
        class Layer(nn.Module):
            def forward(self, x, other=None):
                act = x if other is None else other + x
                low = act.data.min()
                high = act.data.max()
                assert low.isnan().sum() == 0  # TPF303
                if high > 3:
                    return x
                return act
        """,
        ALL,
        prelude="import torch\nfrom torch import nn\n",
    )


MATCHING = """
    import numpy as np
    import torch
    from scipy.optimize import linear_sum_assignment
    from torch import Tensor, nn

    class Matcher(nn.Module):
        @torch.no_grad()
        def forward(self, outputs, targets):
            cost = torch.cdist(outputs["boxes"], targets["boxes"]).cpu()  # TPF102
            found = [linear_sum_assignment(c[i]) for i, c in enumerate(cost.split([3, 4], -1))]
            return [
                (torch.as_tensor(i, dtype=torch.int64), torch.as_tensor(j, dtype=torch.int64))
                for i, j in found
            ]
    """


def test_pairs_that_a_matcher_makes_on_the_host_are_copied_where_they_index() -> None:
    check(
        MATCHING
        + """
    class Criterion(nn.Module):
        def __init__(self):
            super().__init__()
            self.matcher = Matcher()

        def _source_index(self, indices):
            batch = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
            return batch, torch.cat([src for (src, _) in indices])

        def loss_labels(self, outputs, targets, indices):
            logits = outputs["logits"]
            idx = self._source_index(indices)
            o = torch.cat([t["labels"][J] for t, (_, J) in zip(targets, indices)])  # TPF502
            classes = torch.full(logits.shape[:2], 91, device=logits.device)
            classes[idx] = o  # TPF502
            return logits[idx]  # TPF502

        def forward(self, outputs, targets):
            indices = self.matcher(outputs, targets)
            return self.loss_labels(outputs, targets, indices)
    """,
        ALL,
        prelude="",
    )


def test_other_lists_that_are_passed_index_nothing_on_a_device() -> None:
    check(
        MATCHING
        + """
    class Criterion(nn.Module):
        def __init__(self):
            super().__init__()
            self.matcher = Matcher()

        def on_device(self, outputs, targets, indices):
            moved = [(i.to(outputs.device), j.to(outputs.device)) for i, j in indices]  # TPF502, TPF502
            return torch.cat([t[J] for t, (_, J) in zip(targets, moved)])

        def arrays(self, names, targets, indices):
            names = np.array(names)
            return [names[J] for _, J in indices], [targets[k] for k in range(len(targets))]

        def forward(self, outputs, targets, names: list[str]):
            indices = self.matcher(outputs, targets)
            self.arrays(names, targets, indices)
            return self.on_device(outputs, targets, indices)
    """,
        ALL,
        prelude="",
    )


def test_the_constructors_calls_show_the_matcher_and_a_table_the_losses() -> None:
    check(
        MATCHING
        + """
    class Criterion(nn.Module):
        def __init__(self, classes, matcher):
            super().__init__()
            self.matcher = matcher

        def loss_labels(self, outputs, targets, indices):
            return torch.cat([t["labels"][J] for t, (_, J) in zip(targets, indices)])  # TPF502

        def get_loss(self, loss, outputs, targets, indices, **kwargs):
            table = {"labels": self.loss_labels}
            return table[loss](outputs, targets, indices, **kwargs)

        def forward(self, outputs, targets):
            indices = self.matcher(outputs, targets)
            losses = {}
            for loss in ["labels", "boxes"]:
                losses.update(self.get_loss(loss, outputs, targets, indices))
            return losses

    class Other(nn.Module):
        def __init__(self, matcher):
            super().__init__()
            self.matcher = matcher

        def loss(self, targets, indices):
            return torch.cat([t["labels"][J] for t, (_, J) in zip(targets, indices)])

        def forward(self, outputs, targets):
            return self.loss(targets, self.matcher(outputs, targets))

    class Greedy(nn.Module):
        def forward(self, outputs, targets):
            return [(c.argmax(0), c.argmax(1)) for c in outputs["costs"]]

    def build_matcher(args):
        return Matcher()

    def build(args):
        matcher = build_matcher(args)
        return Criterion(3, matcher=matcher), Other(Matcher()), Other(Greedy())
    """,
        ALL,
        prelude="",
        only=frozenset(("TPF102", "TPF501", "TPF502")),
    )
