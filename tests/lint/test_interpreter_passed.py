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
