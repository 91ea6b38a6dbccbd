"""Indices without dimensions: Python reads them, and how a tensor was made says how many it has."""

from linting import ALL, check, table

INDICES = {
    "the best of one dimension": """
        def f(x: Tensor, vals: Tensor):
            best = torch.argmax(vals.view(-1), dim=0)
            a = x[best]  # TPF107
            _, i = vals.view(vals.size(0), -1).sum(-1).min(0)
            b = x[i]  # TPF107
            top, j = vals.flatten().max(dim=0)
            c = x[..., j, :]  # TPF107
            d = x[vals.reshape(len(x), -1).argmax(dim=1)]
            e = x[vals.view(-1).argmax(dim=0, keepdim=True)]
            g = x[vals.argmax(dim=0)]
            return x[vals.view(2, 3, 4).sum((0, 1)).argmax(0)]  # TPF107
        """,
    "elements of what was made with one dimension": """
        def f(x: Tensor, device):
            ids = torch.empty(len(x), dtype=torch.long, device=device)
            a = x[ids[0]]  # TPF107
            b = x[:, ids[2:][1]]  # TPF107
            grid = torch.zeros(3, 4, dtype=torch.long, device=device)
            c = x[grid[0]]
            d = x[grid[0, 1]]  # TPF107
            e = x[grid[0][1]]  # TPF107
            order = torch.randperm(len(x), device=device)
            g = x[order[0]]  # TPF107
            h = x[order.unsqueeze(0)[0]]
            i = x[torch.stack([order, order])[0, 0]]  # TPF107
            return x[grid[None][0, 1]], x[order[order]], x[grid[order, 0]]
        """,
    "rows of indices": """
        def f(x: Tensor, hits: Tensor):
            rows = hits.nonzero()  # TPF401
            a = x[rows[0]]
            b = x[rows[0, 1]]  # TPF107
            for row in rows:  # TPF201
                c = x[row]
                d = x[row[0]]  # TPF107
            (first,) = hits.view(-1).nonzero(as_tuple=True)  # TPF401
            e = x[first[0]]  # TPF107
            y, z = torch.where(hits > 0)  # TPF401
            return x[y[0]], x[y], x[y + 1]  # TPF107
        """,
    "numbers of dimensions that nothing tells": """
        def f(x: Tensor, ids: torch.LongTensor, shape, n):
            a = x[ids[0]]
            b = x[ids.view(shape)[0]]
            c = x[ids.sum(0)]
            d = x[torch.zeros(shape, dtype=torch.long)[0]]
            e = x[ids.view(-1).view(*shape)[0]]
            g = x[torch.zeros(n, dtype=torch.long, device=x.device)[0]]
            h = x[ids.view(-1).sum(n)]
            i = x[ids.view(-1).sum(0, keepdim=n)]
            return x[ids.view(-1)[n]], x[ids.view(-1)[ids]]
        """,
    "a shape that is changed in place": """
        def f(x: Tensor, hits: Tensor):
            rows = hits.nonzero()  # TPF401
            rows.squeeze_(1)
            for i in range(len(rows)):
                a = x[rows[i]]  # TPF107
            ids = hits.view(-1)
            b = x[ids[0]]  # TPF107
            ids.unsqueeze_(0)
            return x[ids[0]]
        """,
    "one path with one dimension, one with two": """
        def f(x: Tensor, ids: Tensor, flag: bool):
            index = ids.view(-1)
            if flag:
                index = index.view(-1, 2)
            a = x[index[0]]
            index = index.view(-1)
            return x[index[0]]  # TPF107
        """,
}

QUIET = {
    "a number of the host": """
        def f(x: Tensor):
            ids = torch.empty(len(x), dtype=torch.long)
            return x[ids[0]], x[torch.tensor([1, 2])[0]]
        """,
    "where values are not indices": """
        def f(x: Tensor, weights: Tensor):
            total = weights.view(-1).sum(0)
            return x * total, total[None], total.expand(3)
        """,
}


@table(INDICES)
def test_indices_that_python_reads(code):
    check(code, ALL, only=frozenset({"TPF107", "TPF201", "TPF401"}))


@table(QUIET)
def test_what_costs_nothing_stays_silent(code):
    check(code, ALL, only=frozenset({"TPF107"}))
