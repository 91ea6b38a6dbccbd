"""Operations whose shape or cost depends on data, clause by clause: TPF401 to TPF406."""

from __future__ import annotations

from linting import ALL, HOT, check, findings, program, table

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options

SHAPES = {
    "401: positions of what is not zero": """
        def step(x: Tensor):
            a = x.nonzero()  # TPF401
            b = x.nonzero(as_tuple=True)  # TPF401
            c = torch.nonzero(x > 0, as_tuple=False)  # TPF401
            d = torch.argwhere(x), x.argwhere()  # TPF401, TPF401
            e = torch.where(x > 0)  # TPF401
            f = torch.where(condition=x > 0)  # TPF401
            i, j = torch.where(x > 0)  # TPF401
            return a, b, c, d, e, f, torch.where(x > 0)[0], i, j  # TPF401
        """,
    "401: as many as are asked for, and values chosen": """
        def step(x: Tensor, a: np.ndarray):
            b = torch.nonzero_static(x, size=4), x.nonzero_static(size=4)
            c = torch.where(x > 0, x, 0), (x > 0).where(x, 0)
            return b, c, np.nonzero(a), np.where(a > 0)
        """,
    "402: read through a mask": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("keep", torch.ones(3, dtype=torch.bool))

            def forward(self, x: Tensor):
                m = x > 0
                a = x[m], x[..., m], x[:, m[0]]  # TPF402, TPF402, TPF402
                b = x[x > 0], x[~m], x[m & (x < 3)]  # TPF402, TPF402, TPF402
                c = x.masked_select(m), torch.masked_select(x, m)  # TPF402, TPF402
                d = x[torch.isnan(x)], x[m == 1]  # TPF402, TPF402
                e = x[x.bool()], x[x.to(torch.bool)]  # TPF402, TPF402
                return a, b, c, d, e, x[self.keep]  # TPF402
        """,
    "402: chosen by a mask, or by positions": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("index", torch.tensor([0, 2]))

            def forward(self, x: Tensor, index: torch.LongTensor, n: int):
                m = x > 0
                a = torch.where(m, x, 0), x.masked_fill(m, 0)
                b = x[index], x[self.index], x[m.long()], x.index_select(0, index)
                return a, b, x[torch.arange(n, device=x.device)]
        """,
    "403: tensors written through a mask": """
        def step(x: Tensor, t: Tensor):
            m = x > 0
            x[m] = t  # TPF403
            x[m] = t.sum()  # TPF403
            x[:, m[0]] = t  # TPF403
            x.index_put_((m,), t)  # TPF403
            x[m] = t[m]  # TPF402, TPF403
            return x.index_put((m,), t)  # TPF403
        """,
    "403: numbers written through a mask": """
        def step(x: Tensor, t: Tensor, n: int, index: torch.LongTensor):
            m = x > 0
            x[m] = 0
            x[m] = 0.5
            x[m] = -math.inf
            x[m] = float("inf")
            x[m] = n
            x[m] = torch.tensor(0.0)
            x.masked_fill_(m, 0)
            x = x.masked_scatter(m, t)
            x[index] = t
            return x
        """,
    "404: sizes that the data decides": """
        def step(x: Tensor, n: int):
            a = x.unique(), x.unique(dim=0), torch.unique(x, sorted=False)  # TPF404, TPF404, TPF404
            b, count = torch.unique(x, return_counts=True)  # TPF404
            c = torch.unique_consecutive(x), x.unique_consecutive()  # TPF404, TPF404
            d = torch.bincount(x), x.bincount(minlength=n)  # TPF404, TPF404
            e = torch.histc(x), torch.histc(x, bins=10)  # TPF404, TPF404
            return a, b, c, d, e, torch.histc(x, bins=10, min=0, max=1), torch.histogram(x, 10)
        """,
    "404: errors that are checked on the host": """
        def step(x: Tensor, y: Tensor):
            a = torch.linalg.inv(x), torch.inverse(x), x.inverse()  # TPF404, TPF404, TPF404
            b = torch.linalg.solve(x, y), torch.linalg.lstsq(x, y).solution  # TPF404, TPF404
            c = torch.linalg.cholesky(x), torch.cholesky(x), x.cholesky()  # TPF404, TPF404, TPF404
            d = torch.linalg.cholesky_ex(x, check_errors=True)  # TPF404
            e = torch.linalg.inv_ex(x)[0], torch.linalg.solve_ex(x, y)
            f, info = torch.linalg.cholesky_ex(x)
            h = torch.linalg.cond(x), torch.linalg.tensorinv(x)  # TPF404, TPF404
            i = y.coalesce()  # TPF404
            g = torch.linalg.solve_triangular(x, y, upper=True), torch.linalg.qr(x)
            return a, b, c, d, e, f, g, torch.linalg.norm(x)
        """,
    "405: sizes that could be passed": """
        from torch.nn.utils.rnn import pack_padded_sequence

        def step(x: Tensor, y: Tensor, z: Tensor, n: int):
            a = x.repeat_interleave(y), torch.repeat_interleave(x, y, dim=0)  # TPF405, TPF405
            b = torch.repeat_interleave(y), torch.repeat_interleave(x, repeats=y)  # TPF405, TPF405
            c = F.one_hot(x), F.one_hot(x, -1), F.one_hot(x, num_classes=-1)  # TPF405, TPF405, TPF405
            lengths = z.cuda()
            d = F.ctc_loss(x, y, lengths, target_lengths=lengths)  # TPF405
            return a, b, c, d, pack_padded_sequence(x, lengths, batch_first=True)  # TPF405
        """,
    "405: sizes that are passed": """
        from torch.nn.utils.rnn import pack_padded_sequence

        def step(x: Tensor, y: Tensor, z: Tensor, n: int, lengths: list[int]):
            a = torch.repeat_interleave(x, y, dim=0, output_size=n), x.repeat_interleave(3)
            b = x.repeat_interleave(n, dim=1), x.repeat_interleave(repeats=2, dim=1)
            c = F.one_hot(x, 10), F.one_hot(x, num_classes=n)
            d = pack_padded_sequence(x, lengths), pack_padded_sequence(x, [3, 2])
            e = F.ctc_loss(x, y, z, z), torch.ctc_loss(x, y, [3, 2], [3, 2]), F.ctc_loss(x, y, lengths, lengths)
            return a, b, c, d, pack_padded_sequence(x, torch.tensor([3, 2]))
        """,
    "406: lists as indices": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.columns = [0, 2]

            def forward(self, x: Tensor, several: list[int], n: int, index: torch.LongTensor):
                a = x[[0, 2]], x[:, [0, 2]], x[..., [0, 1]]  # TPF406, TPF406, TPF406
                b = x[several], x[self.columns], x[list(range(n))]  # TPF406, TPF406, TPF406
                x[[0, 2]] = 0  # TPF406
                x[:, several] = 1  # TPF406
                return a, b, x[index, [0, 1]], x[[i for i in several if i > 2]]  # TPF406, TPF406
        """,
    "406: host tensors as indices of a tensor on a device": """
        def step(y: Tensor, z: Tensor, n: int, a: np.ndarray):
            x = y.cuda()
            kept = x.argmax(-1).cpu()  # TPF102
            b = x[torch.arange(n)], z[torch.randperm(n)[:3]]  # TPF501, TPF501
            c = x[torch.tensor([0, 1])], z[torch.tensor([0, n])]  # TPF502, TPF502
            d = x[kept], x[torch.from_numpy(a)]  # TPF406, TPF502
            return b, c, d, x[torch.tensor(3)], [x[i] for i in torch.arange(n)]
        """,
    "406: slices, numbers and indices on the device": """
        def step(y: Tensor, n: int, index: torch.LongTensor, several: list[int], a: np.ndarray):
            x = y.cuda()
            b = x[0], x[-1], x[n], x[0, 1], x[(0, 1)], x[1:3], x[..., None], x[:, :, n : n + 1]
            c = x[index], x[torch.arange(n, device=x.device)], x[slice(0, n)], x[None], x[True]
            return b, c, several[0], a[[0, 1]], a[several], x.shape[n]
        """,
}


@table(SHAPES)
def test_shapes(code: str) -> None:
    check(code)


WHERE_IT_LIES_IS_ASSUMED = """
    def step(x: Tensor, y: Tensor):
        order = y.argsort().cpu()  # TPF102
        return x[order], x[order + 1]  # TPF406, TPF406
    """


def test_that_an_indexed_tensor_lies_on_a_device_is_an_assumption() -> None:
    check(WHERE_IT_LIES_IS_ASSUMED, Options(confidence="assumed"))
    told = findings(program(WHERE_IT_LIES_IS_ASSUMED), HOT)
    assert [one.split()[1] for one in told] == ["TPF102"]


def test_nothing_is_said_of_what_is_known_to_be_on_the_host() -> None:
    code = """
        def step(n: int, several: list[int]):
            x = torch.zeros(n, device="cpu")
            a = x.nonzero(), torch.where(x), x[x > 0], x.unique(), torch.linalg.inv(x), x[[0, 2]]
            x[x > 0] = torch.ones(3)
            b = x.repeat_interleave(x.long()), F.one_hot(x.long()), torch.bincount(x.long())
            return a, b, x[torch.arange(n)], x[several], torch.histc(x)
        """
    assert findings(program(code), Options(scope=Level.COLD, confidence="assumed")) == []


ADVICE = {
    "linalg.inv": "torch.linalg.inv_ex",
    "inverse": "torch.linalg.inv_ex",
    "linalg.solve": "torch.linalg.solve_ex",
    "linalg.cholesky": "torch.linalg.cholesky_ex",
    "linalg.lu_factor": "torch.linalg.lu_factor_ex",
    "linalg.ldl_factor": "torch.linalg.ldl_factor_ex",
    "linalg.eigh": "move it out of the hot code",
    "linalg.pinv": "move it out of the hot code",
}


def test_the_advice_names_the_form_that_does_not_check() -> None:
    for name, words in ADVICE.items():
        given = "x, x" if name == "linalg.solve" else "x"
        code = f"""
        def step(x: Tensor):
            return torch.{name}({given})
        """
        (found,) = findings(program(code), ALL)
        assert "TPF404" in found
        assert words in found
