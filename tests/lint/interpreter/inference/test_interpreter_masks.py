"""Which tensors are boolean: masks that arithmetic keeps, that join with others, that are declared."""

from linting import ALL, check, table

MASKS = {
    "a mask that is added to in place stays one": """
        def f(x: Tensor, y: Tensor):
            found = torch.full(x.shape, False, device=x.device)
            for i in range(3):
                found += y == i
            return x[found]  # TPF402
        """,
    "in place, whatever is added": """
        def f(x: Tensor, y: Tensor):
            found = x > 0
            found |= y
            found &= y.ne(2)
            return x[found]  # TPF402
        """,
    "the sum of two masks is one, that of a mask and a number is not": """
        def f(x: Tensor):
            return x[(x > 2) + (x < -2)], x[(x > 2) + 1]  # TPF402
        """,
    "of floats on one path, it is boolean where it is an index": """
        def f(x: Tensor, some: bool):
            kept = torch.zeros(8, device=x.device)
            if some:
                kept = x > 3
            return x[kept]  # TPF402
        """,
    "of integers on one path, it may be an index of those": """
        def f(x: Tensor, some: bool):
            kept = torch.arange(8, device=x.device)
            if some:
                kept = x > 3
            return x[kept]
        """,
    "an attribute that begins as zeros": """
        class Env:
            def __init__(self, n, device):
                self.covered = torch.zeros(n, 3, device=device)

            def update(self, x: Tensor):
                self.covered = x >= 1

            def select(self, x: Tensor):
                return x[self.covered]  # TPF402
        """,
}

DECLARED = {
    "a mask among what an index is declared to be": """
        def f(x: Tensor, item: int | slice | torch.BoolTensor):
            if isinstance(item, int):
                return x[item].view(1, -1)
            return x[item]  # TPF402
        """,
    "not told apart": """
        def f(x: Tensor, item: Union[slice, "torch.BoolTensor"]):
            return x[item]  # TPF402
        """,
    "any tensor among them may be one of integers": """
        def f(x: Tensor, item: int | slice | Tensor):
            return x[item]
        """,
    "what else it may be is not known": """
        def f(x: Tensor, item: Selector | torch.BoolTensor):
            return x[item]
        """,
}


@table(MASKS)
def test_what_makes_a_mask(code):
    check(code, ALL)


@table(DECLARED)
def test_masks_that_are_declared_beside_other_indices(code):
    check(code, ALL)


def test_rows_of_what_had_its_dimensions_exchanged_are_no_numbers():
    check(
        """
        def f(actions: Tensor, table: Tensor, rows: Tensor):
            for a in actions.transpose(0, 1):  # TPF201
                table[rows, a] -= 1
            for a in actions:  # TPF201
                table[rows, a] -= 1  # TPF107
        """,
        ALL,
    )


def test_a_list_of_tensors_or_one_of_them():
    check(
        """
        def f(parts, n: int, device):
            result = []
            for i in range(n):
                result.append(torch.sum(parts[i]))
            if n == 1:
                result = result[0]
            return torch.tensor(result, device=device)  # TPF107
        """,
        ALL,
    )


def test_to_where_another_lies():
    """That the other one lies on the host says little where nobody said that it should."""
    check(
        """
        def f(x: Tensor, n: int):
            ones = torch.diag_embed(torch.ones(n - 1), offset=-1)
            return x.gt(0).to(ones), x.to("cpu")  # TPF102
        """,
        ALL,
    )


def test_what_is_asked_for_its_number_of_dimensions():
    check(
        """
        def gather(source, index):
            index = index.view(index.shape + (1,) * (source.dim() - 1))
            return source.prod().item()  # TPF101

        def of_arrays(source):
            return source.dim + source.prod().item()
        """,
        ALL,
    )
