"""Reads with no telltale call: numbers, masks, truths and bounds that are tensors.

What each line asks is what Python or torch does on its own; the silent ones ask nothing of a tensor.
"""

from linting import ALL, check, table

NUMBERS = {
    "max and min": """
        def f(t: Tensor, xs: list[Tensor], n: int):
            a = max(1, t.sum())  # TPF103
            b = min(t.mean(), 1.0)  # TPF103
            c = max(t.max(), n, 3)  # TPF103
            d = max(1, n)
            e = max(*[t.mean(), n])  # TPF103
            g = max([t.mean(), 1])  # TPF103
            h = max((x.mean() for x in xs), default=0)  # TPF103
            return sorted([t[0], t[1]])  # TPF103
        """,
    "slice bounds": """
        def f(t: Tensor, n: Tensor):
            a = t[: n.sum()]  # TPF107
            b = t[n.max():]  # TPF107
            c = t[:, :n[0]]  # TPF107
            d = t[0:10:n.min()]  # TPF107
            e = t[..., : int(n.max())]  # TPF101
            l = list(range(10))
            return l[: n.sum()], t[: n.shape[0]], t[: len(n)]  # TPF107
        """,
    "range": """
        def f(n: Tensor):
            for i in range(n):  # TPF107
                pass
            for i in range(0, n.max(), 2):  # TPF107
                pass
            return [i for i in range(n.max() + 1)], list(range(n[0]))  # TPF107, TPF107
        """,
    "arange": """
        def f(lengths: Tensor):
            total = lengths.sum()
            a = torch.arange(total)  # TPF107
            b = torch.arange(lengths.max(), device=lengths.device)  # TPF107
            c = torch.arange(0, total, 2)  # TPF107
            d = torch.arange(start=0, end=total)  # TPF107
            n = lengths.max()
            mask = torch.arange(n)[None, :] < lengths[:, None]  # TPF107
            g = torch.arange(lengths.shape[0])
            return torch.arange(end=lengths.max() + 1)  # TPF107
        """,
    "repeats, with and without their sum": """
        def f(x: Tensor, r: Tensor, n: int):
            a = x.repeat_interleave(r)  # TPF405
            b = torch.repeat_interleave(x, r, dim=0)  # TPF405
            c = torch.repeat_interleave(x, repeats=r)  # TPF405
            d = torch.repeat_interleave(r)  # TPF405
            e = x.repeat_interleave(r, output_size=n)
            g = x.repeat_interleave(3, dim=0)
            h = torch.repeat_interleave(x, n)
            i = torch.repeat_interleave(x, r, 0, output_size=n)
            j = x.repeat_interleave(repeats=r, dim=1)  # TPF405
            return x.repeat_interleave(r - 1)  # TPF405
        """,
    "bincount, whatever its length": """
        def f(ids: Tensor, w: Tensor, n: int):
            a = torch.bincount(ids)  # TPF404
            b = torch.bincount(ids, minlength=n)  # TPF404
            c = ids.bincount(minlength=3)  # TPF404
            d = torch.bincount(ids, weights=w, minlength=n)  # TPF404
            return ids.view(-1).bincount(w, n)  # TPF404
        """,
    "a factor computed from a norm": """
        def f(params: list[nn.Parameter], max_norm: float):
            total = torch.norm(torch.stack([p.grad.norm() for p in params]))  # TPF204
            clip = max_norm / (total + 1e-6)
            if clip > 1:  # TPF301
                clip = 1.0
            coef = max_norm / (total + 1e-6)
            if coef < 1:  # TPF301
                for p in params: p.grad.mul_(coef)  # TPF204
            c2 = min(1.0, coef)  # TPF103
            return total
        """,
    "numbers of the host": """
        def f(t: Tensor, n: int, step, cfg):
            k = len(t) * 2 + t.shape[0] // 2
            if k > 1: pass
            for i in range(k): pass
            torch.arange(k); t[:k]; t[k:]; t[k]; max(1, k); min(k, t.size(1)); torch.zeros(k, n)
            if step % 100 == 0 or cfg.n > 3: pass
            i = int(cfg.n); t[: i]; range(i); t.view(-1, i)
            h, w = t.shape[-2:]
            if h > w: pass
            return t[: h // 2, : w], torch.arange(h), max(h, w), math.sqrt(h), [0] * h
        """,
}


MASKS = {
    "comparisons and their combinations": """
        def f(x: Tensor, y: Tensor, n: int):
            m = x > 0
            x[m]  # TPF402
            x[x == y]  # TPF402
            x[(x > 0) & (y < 1)]  # TPF402
            x[~(x != 0)]  # TPF402
            x[m | y.bool()]  # TPF402
            x[m ^ (y > 0)]  # TPF402
            x[m.logical_not()]  # TPF402
            x[m, 0]  # TPF402
            x[:, m]  # TPF402
            x[..., m]  # TPF402
            x[0, m]  # TPF402
            y[None][m]  # TPF402
            x[n > 3]
            x[None], x[...], x[True]
        """,
    "casts, known and unknown": """
        def f(x: Tensor, m: Tensor, k):
            x[m.bool()]  # TPF402
            x[m.to(torch.bool)]  # TPF402
            x[m.to(dtype=torch.bool)]  # TPF402
            x[m.type(torch.bool)]  # TPF402
            x[m.to(bool)]  # TPF402
            x[m.to(device=x.device, dtype=torch.bool)]  # TPF402
            x[m.to(x.device, torch.bool)]  # TPF402
            x[m.type(torch.BoolTensor)]  # TPF102
            x[m.type_as(x > 0)]  # TPF402
            x[torch.as_tensor(k, dtype=torch.bool, device=x.device)]  # TPF402
            x[m.long()], x[m.int()], x[m.to(torch.long)], x[m.byte().long()]
            x[m]
            x[m.view(torch.bool)]  # TPF402
        """,
    "views and copies of a mask": """
        def f(x: Tensor):
            m = x > 0
            x[m[0]]  # TPF402
            x[m[:, 0]]  # TPF402
            x[m[..., None]]  # TPF402
            x[m.view(-1)]  # TPF402
            x[m.reshape(-1, 3)]  # TPF402
            x[m.unsqueeze(-1).expand_as(x)]  # TPF402
            x[m.squeeze()]  # TPF402
            x[m.t()]  # TPF402
            x[m.permute(1, 0)]  # TPF402
            x[m.flatten()]  # TPF402
            x[m.transpose(0, 1).contiguous()]  # TPF402
            x[m.clone()]  # TPF402
            x[m.detach()]  # TPF402
            x[m.repeat(2, 1)]  # TPF402
            x[m.flip(0)]  # TPF402
            x[m.roll(1)]  # TPF402
            x[m.cuda()]  # TPF402
            x[m.to("cuda")]  # TPF402
            x[m.to(x.device)]  # TPF402
            a, b = m.chunk(2)
            x[a]  # TPF402
            for row in m:  # TPF201
                x[row]  # TPF402
            x[torch.cat([m, m])]  # TPF402
            x[torch.stack([m, m]).any(0)]  # TPF402
            x[torch.where(m, m, ~m)]  # TPF402
            x[F.pad(m, (1, 0), value=False)]  # TPF402
            x[m.masked_fill(m, False)]  # TPF402
            x[m.scatter(0, x.long(), True)]  # TPF402
            x[m.gather(0, x.long())]  # TPF402
            x[m.index_select(0, x.long())]  # TPF402
            x[m.diagonal()]  # TPF402
            x[m.broadcast_to(3, 3)]  # TPF402
            x[torch.broadcast_to(m, x.shape)]  # TPF402
            x[m.float() > 0.5]  # TPF402
            x[m.cumsum(0)]
            x[m.sum(0)]
            x[m.long()]
            x[m.max(0).values]  # TPF402
            x[m.int() * 3]
            return x[m.nonzero()]  # TPF401
        """,
    "what functions return": """
        def make_mask(x: Tensor):
            return x > 0
        def lengths_to_mask(lengths, n):
            return torch.arange(n, device=lengths.device)[None] < lengths[:, None]
        def both(x: Tensor) -> Tuple[Tensor, Tensor]:
            return x > 0, x < 0
        def ids(x: Tensor) -> Tensor:
            return x.argsort()
        def f(x: Tensor, n: int):
            x[make_mask(x)]  # TPF402
            m = lengths_to_mask(x, n)
            x[m]  # TPF402
            a, b = both(x)
            x[b]  # TPF402
            return x[ids(x)]
        """,
    "an index of unknown dtype": """
        def f(x: Tensor, m: Tensor, i, j: Any):
            x[m]; x[i]; x[j]; x[m, i]; x[m.view(-1)]; x[m[0]]; x[m.to(x.device)]; x[i.long()]
            return x[m & i]
        """,
    "masks of arrays": """
        def f(a: np.ndarray, b):
            a[a > 0]; c = np.asarray(b); c[c == 0]; c[np.isnan(c)] = 0; c[~np.isfinite(c)]
            if (c > 0).any(): pass
            return c[c > 0].tolist()
        """,
}


TRUTHS = {
    "or, and, not": """
        def f(a: Tensor, b: Tensor, o: Optional[Tensor], n: int):
            x = a or b  # TPF304
            y = a and b  # TPF304
            z = (a > 0).any() or n > 3  # TPF304
            w = n > 3 and a.sum() > 3
            v = n > 3 or a.sum() > 3 or n < 2  # TPF304
            u = not a  # TPF304
            t = not (a > b).all()  # TPF304
            s = o or b  # TPF304
            r = b if o is None else o
            return (a == b).all() and n  # TPF304
        """,
    "chained comparisons": """
        def f(a: Tensor, n: int, lo: float):
            if 0 < a < 1: pass  # TPF301
            x = 0 <= a.max() <= n  # TPF304
            if a == [n, 2] or a.shape != a or (1, 2) == a: pass
            assert lo < a.mean() < 3  # TPF303
            y = 0 < n < 3
            z = 0 < n <= a.sum()
            return a.min() < n < 3 < lo  # TPF304
        """,
    "membership": """
        def f(t: Tensor, xs: list[Tensor], n: int, names: list[str], d: Dict[str, Tensor]):
            if t in xs: pass  # TPF105
            if n in t: pass  # TPF105
            if t.max() in (1, 2): pass  # TPF105
            if t not in [xs[0], xs[1]]: pass  # TPF105
            if 3 in t.unique(): pass  # TPF105, TPF404
            x = n in t  # TPF105
            if any(t is y for y in xs): pass
            if "a" in d or "b" in names or n in (1, 2) or n in range(3): pass
            if t.dim() in (2, 3) or t.dtype in (torch.float, torch.half) or t.device in (1,): pass
            if t.shape[0] in [1, 2] or len(t) in (1,): pass
            i = xs.index(t)  # TPF105
            c = xs.count(t)  # TPF105
            xs.remove(t)  # TPF105
            return t[0] in {1, 2}
        """,
    "min and max with a counter": """
        def f(t: Tensor, i: int):
            a = min(i, t)  # TPF103
            b = max(i, t.sum(), 3)  # TPF103
            for k in range(3):
                i = min(k, t.max())  # TPF103
            return min(t.tolist())  # TPF102
        """,
    "sums of a mask": """
        def f(m: Tensor, t: Tensor):
            if sum(m) != 0: pass  # TPF201, TPF301
            if sum(t > 0) > 3: pass  # TPF201, TPF301
            if torch.sum(m) == 0: pass  # TPF301
            if m.sum() > 0: pass  # TPF301
            if (t > 0).sum(): pass  # TPF301
            if sum([x.any() for x in (m, t)]): pass  # TPF301
            if all(m) or any(t > 0): pass  # TPF103, TPF103
            x = len(m) if m.sum() == m.numel() else 3  # TPF301
            while m.sum(): m = m[1:]  # TPF302
            return any(t.isnan())  # TPF103
        """,
    "helpers whose result is a tensor": """
        def has_nan(t: Tensor):
            return torch.isnan(t).any()
        def both(a, b):
            return (a > b).all() & (b > 0).all()
        def shape_ok(t: Tensor):
            return t.dim() == 2 and t.shape[0] > 3
        class H:
            def converged(self, x: Tensor, tol=1e-3):
                return (x.abs() < tol).all()
            def done(self): return self.n > 3
            def run(self, x: Tensor):
                while not self.converged(x):  # TPF302
                    x = x / 2
                if self.done(): pass
                if self.converged(x) and self.done(): return x  # TPF301
        def f(t: Tensor):
            if has_nan(t): raise ValueError  # TPF301
            if not has_nan(t) and shape_ok(t): pass  # TPF301
            if shape_ok(t): pass
            assert not has_nan(t)  # TPF303
            ok = both(t, t * 2)
            if ok: pass  # TPF301
            return 1 if has_nan(t) else 0  # TPF301
        """,
    "text made as an argument": """
        def log(msg): pass
        def f(t: Tensor, d: Dict[str, Tensor], verbose: bool, n: int):
            log(f"loss {t}")  # TPF104
            log("loss %s" % t)  # TPF104
            log("loss {}".format(t.mean()))  # TPF104
            log("loss " + str(t))  # TPF104
            msg = f"{t.sum():.2f}"  # TPF104
            torch._check(n > 3, lambda: f"n {n}")
            assert n > 3, f"got {n}"
            if verbose: print(f"{t}")  # TPF104
            log(f"{t.shape} {t.dtype} {len(t)} {n} {t.device} {t.size(0)} {t.ndim}")
            raise_if(n > 3, f"value {t}")  # TPF104
            log(f"{d}")  # TPF104
            log(f"{d['a']:.3f} {n}")  # TPF104
            log(f"{[x for x in d.values()]}")  # TPF104
            log(msg=f"x={t.mean()}")  # TPF104
            return f"{t!r}", "%s %d" % (n, t.sum()), "%(a)s" % {"a": t}  # TPF104, TPF104, TPF104
        """,
}


PAIRS = {
    "bounds by zip": """
        def f(x: Tensor, starts: Tensor, ends: Tensor):
            out = []
            for s, e in zip(starts, ends):  # TPF201
                out.append(x[s:e])  # TPF107, TPF107
            return out
        """,
    "bounds by zip in a comprehension": """
        def f(x: Tensor, counts: Tensor):
            ends = counts.cumsum(0)
            starts = ends - counts
            return [x[:, s:e] for s, e in zip(starts, ends)]  # TPF107, TPF107, TPF201
        """,
    "unique with counts": """
        def f(ids: Tensor):
            u, c = torch.unique(ids, return_counts=True)  # TPF404
            for n in c.tolist():  # TPF102
                pass
            return u.max().item()  # TPF101
        """,
    "by field": """
        def f(t: Tensor):
            r = t.max(dim=-1, keepdim=True)
            if r.values.sum() > 1:  # TPF301
                return r.indices.cpu()  # TPF102
        """,
    "names by index": """
        def f(scores: Tensor, names: list[str]):
            conf, idx = F.softmax(scores, -1).topk(5)
            return [names[i] for i in idx]  # TPF107, TPF201
        """,
}


@table(NUMBERS)
def test_numbers(code: str) -> None:
    check(code, ALL)


@table(MASKS)
def test_masks(code: str) -> None:
    check(code, ALL)


@table(TRUTHS)
def test_truths(code: str) -> None:
    check(code, ALL)


@table(PAIRS)
def test_pairs(code: str) -> None:
    check(code, ALL)
