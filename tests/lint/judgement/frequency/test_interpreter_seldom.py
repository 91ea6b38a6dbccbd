"""Places that run seldom, and waits that are asked for or cannot be: facts about code, not names.

Each program is silent by default and reports the marked lines in scope `all`; its near neighbours,
which are hot, are reported in both.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import ALL, HOT, check, findings, program, table

from flake8_torchperf.linter import lint

SELDOM = {
    "called by what initialises, and by nothing else": """
        def _init_transformer(module: nn.Module):
            def normal_(data: Tensor):
                data.copy_(data.cpu().normal_().to(data.device))  # TPF102, TPF503
            normal_(module.weight.data)

        class Net(nn.Module):
            def merge(self, safe_merge: bool = False):
                for w in self.parameters():
                    if not w.isfinite().all():  # TPF301
                        raise ValueError("broken")
        """,
    "what is saved on request": """
        def sample(xs: list[Tensor], save_intermediates: bool):
            kept = []
            for x in xs:
                if save_intermediates:
                    kept.append(x.cpu())  # TPF102
            return kept
        """,
    "a collator of some kind": """
        class DataCollatorForSpans(Base):
            def torch_call(self, labels: Tensor):
                return [len(row) for row in labels.tolist()]  # TPF102
        """,
    "an array for another library, or none": """
        def distances(x: Tensor, y: Tensor | None):
            import gdist
            ours = None if y is None else y.detach().cpu().numpy()  # TPF102
            return gdist.compute(ours)
        """,
    "what is done after something failed": """
        def step(x: Tensor):
            for i in range(3):
                try:
                    x = x @ x
                except RuntimeError:
                    x = x / x.max().item()  # TPF101
            return x
        """,
    "at the end of an epoch": """
        class Stop:
            def on_train_epoch_end(self, current: Tensor):
                if current.isfinite().item():  # TPF101
                    return current.item()  # TPF101

            def on_validation_end(self, current: Tensor):
                return current.isfinite().item()  # TPF101
        """,
    "a check that a caller asks for": """
        def clip(x: Tensor, check_rows: bool = False):
            if check_rows:
                if x.min() < 0:  # TPF301
                    raise ValueError("negative")
            return x.norm()
        """,
    "solved beside what is on the host": """
        def matrix(values, n: int, x: Tensor):
            q = torch.randn((n, n))
            return torch.linalg.solve(q, torch.diag(torch.as_tensor(values)))  # TPF404
        """,
    "what is given a tensor on the host, or fails": """
        def step(x: Tensor, rows: list[Tensor]):
            for row in rows:
                print(np.median(row), np.asarray(row).sum(), np.array(rows))  # TPF102, TPF102, TPF102
            return x.detach().numpy()  # TPF102
        """,
    "to collate": """
        def torch_default_data_collator(features: list[Tensor]):
            return [f.item() for f in features]  # TPF101
        """,
}


@table(SELDOM)
def test_what_is_seldom_or_cannot_wait(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


HOT_ALL_THE_SAME = {
    "made to be called later": """
        def _init_hooks(module: nn.Module):
            def hook(x: Tensor):
                return x / x.max().item()  # TPF101
            module.register_forward_hook(hook)
        """,
    "a processor of what a model made": """
        class ScaledLogitsProcessor(Base):
            def __call__(self, ids: Tensor, scores: Tensor):
                return scores / scores.max().item()  # TPF101
        """,
    "the test that leads to a warning": """
        import warnings

        def forward(self, x: Tensor):
            if x.min() < 0:  # TPF301
                warnings.warn("negative")
            if len(x) > 3:
                x = x[x > 0]  # TPF402
                warnings.warn("too many")
            return x
        """,
    "what is tried": """
        def step(x: Tensor):
            try:
                x = x / x.max().item()  # TPF101
            except RuntimeError:
                return x
            else:
                return x.sum().item()  # TPF101
            finally:
                print(x)  # TPF104
        """,
    "solved where nothing is known to be on the host": """
        def matrix(values, x: Tensor):
            return torch.linalg.solve(x, torch.diag(torch.as_tensor(values)))  # TPF404
        """,
    "a check that is made unless a caller objects": """
        def clip(x: Tensor, limit: float, validate: bool = True, scaled: bool = False):
            if validate:
                if x.isnan().any():  # TPF301
                    raise RuntimeError("not a number")
            if limit and x.isinf().any():  # TPF301
                raise RuntimeError("infinite")
            if scaled:
                x = x / x.max().item()
            if scaled and x.min() < 0:
                x = x.abs()
            return x
        """,
    "what is called as another operation, or again and again": """
        def rows(x: Tensor):
            return torch.unique(x)  # TPF404

        def unique(xs: list[Tensor]):
            return [torch.unique(x) for x in xs]  # TPF404
        """,
    "at the end of a batch": """
        class Stop:
            def on_train_batch_end(self, current: Tensor):
                return current / current.max().item()  # TPF101
        """,
    "waiting in each step, whoever asks": """
        class Engine:
            def train_step(self, x: Tensor, args):
                torch.cuda.synchronize()  # TPF106
                if args.level >= 1:
                    torch.cuda.empty_cache()  # TPF106
                if self.synchronize:
                    return x.item()  # TPF101
                else:
                    torch.cuda.synchronize()  # TPF106
        """,
    "what is known to be on a device, or asks for a copy": """
        def step(xs: list[Tensor]):
            for x in xs:
                y = x.cuda()
                show(y.numpy(), np.asarray(y), x.numpy(force=True), x.cpu().numpy())  # TPF102, TPF102, TPF102, TPF102
        """,
    "waiting where a number is compared": """
        class Engine:
            def eval_step(self, args):
                if args.empty_unused_memory_level >= 1:
                    torch.cuda.empty_cache()  # TPF106
                if args.sync_every_step == 1:
                    torch.cuda.synchronize()  # TPF106
        """,
    "a step, whatever it is a step of": """
        def _perform_calibration_step(x: Tensor):
            return x.mean().item()  # TPF101
        """,
    "a loop over parts, whatever its class is called": """
        class ImageTextProcessor(Base):
            def __call__(self, images, text, **kwargs):
                sizes = torch.as_tensor([len(i) for i in images], device="cuda")
                return self._pad(sizes)

            def _pad(self, sizes: Tensor):
                return [s.item() for s in sizes.split(1)]  # TPF101
        """,
    "waiting where a flag is set": """
        class Engine:
            def eval_step(self, args):
                if self.synchronize:
                    torch.cuda.synchronize()  # TPF106
        """,
    "a helper of what is done at the end of an epoch": """
        class Stop:
            def on_validation_end(self, current: Tensor):
                return self._stops(current)

            def _stops(self, current: Tensor):
                return current.isfinite().item()  # TPF101
        """,
}


@table(HOT_ALL_THE_SAME)
def test_what_is_hot_all_the_same(code: str) -> None:
    check(code, HOT)


def test_what_is_added_to_a_tensor_on_the_host_stays_there() -> None:
    check(
        """
        def converged(xs: list[Tensor], y: Tensor):
            total = torch.tensor(0.0)
            for x in xs:
                total += torch.norm(x)
            y += torch.tensor(3)
            return bool(total < 3), bool(y.sum() < 3)  # TPF101
        """,
        ALL,
    )


def test_what_is_combined_with_rows_on_the_host_is_there_too() -> None:
    check(
        """
        class Held:
            def __init__(self):
                self.total = torch.zeros(3)

            def grown(self, x: Tensor):
                return x * bool((self.total + x).sum() < 3)  # TPF101

        def directions(x: Tensor, y: Tensor, n: int):
            m = torch.eye(3) - x * x.mT
            rows = torch.zeros(n, 3) + x
            number = torch.zeros(()) + y
            return bool(m.sum() < 3), bool(rows.sum() < 3), y * bool(number.sum() < 3)  # TPF101
        """,
        HOT,
    )


def test_a_folder_that_is_no_package_says_nothing(tmp_path: Path) -> None:
    code = program("def scaled(x: Tensor):\n    return x.item()\n")
    file = tmp_path / "tools" / "testing" / "helpers" / "basic.py"
    file.parent.mkdir(parents=True)
    file.write_text(code)
    assert [f.code for f in lint(code, str(file), HOT)] == ["TPF101"]
    for folder in file.parents[:3]:
        (folder / "__init__.py").touch()
    assert lint(code, str(file), HOT) == []


def test_a_private_module_calls_all_that_it_defines(tmp_path: Path) -> None:
    code = program(
        """
        def scaled(w: Tensor):
            return w / w.max().item()

        class Equalizer(nn.Module):
            def __init__(self, w: Tensor):
                super().__init__()
                self.w = scaled(w)
        """
    )
    for name in ("_equalize.py", "equalize.py"):
        (tmp_path / name).write_text(code)
    assert lint(code, str(tmp_path / "_equalize.py"), HOT) == []
    assert [f.code for f in lint(code, str(tmp_path / "equalize.py"), HOT)] == ["TPF101"]


@pytest.mark.parametrize("name", ["loader/utils.py", "data_loader.py"])
def test_places_that_are_no_part_of_a_step(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    (file.parent / "__init__.py").touch()
    code = program("def scaled(x: Tensor):\n    return x.item()\n")
    file.write_text(code)
    assert lint(code, str(file), HOT) == []
    assert [f.code for f in lint(code, str(file), ALL)] == ["TPF101"]
    assert [f.code for f in lint(code, str(tmp_path / "overloaded.py"), HOT)] == ["TPF101"]


NOT_THERE = {
    "one parameter's norm in each round of training": """
        def train(model: nn.Linear, batches: list[Tensor]):
            loss = 0.0
            for x in batches:
                loss = loss + torch.norm(model.weight) + model.weight.norm()
            for p in model.parameters():
                loss = loss + p.norm()  # TPF204
            return loss
        """,
    "rows that have gradients": """
        def averaged(groups: list[dict[str, Tensor]], x: Tensor):
            for group in groups:
                for p in group["params"]:
                    if p.grad is not None:
                        print(p.shape)
            for row in x:  # TPF201
                x = x + row.sum()
        """,
    "a triple where a tensor is declared": """
        def mask(x: Tensor, thw: Tensor, scale: int):
            t, h, w = thw
            return x.reshape(t, h // scale, w // scale)

        def mask_of(x: Tensor, thw: Tensor, scale: int):
            t, h, w = thw
            return x.reshape(t, h // scale, w // scale)  # TPF107, TPF107, TPF107

        class Net(nn.Module):
            def forward(self, x: Tensor, thw: Tensor):
                x = x / x.max().item()  # TPF101
                return mask(x, (x.shape[0], 3, 4), 2) + mask_of(x, thw, 2) + mask_of(x, (1, 2, 3), 2)
        """,
    "a number for each round, and one that runs up": """
        def grown(x: Tensor, sizes: list[int]):
            total = 0.0
            for i in range(9):
                n = int(x[i].sum())  # TPF101
                sizes[i] = sizes[i] + n
                sizes[i] += n
                sizes[0] += x[i].sum().item()  # TPF206
            return sizes
        """,
    "positions of what is on the host": """
        def lengths(batch_sizes: Tensor, x: Tensor):
            for i in range(1, len(batch_sizes)):
                print(batch_sizes[i].item())
            for i in range(1, len(x)):  # TPF202
                x = x + x[i]
        """,
    "rows for a processor": """
        def features(processor, images: Tensor):
            inputs = processor(images=[i.cpu() for i in images])  # TPF102, TPF201
            return inputs, [i.sum() for i in images]  # TPF201
        """,
}


@table(NOT_THERE)
def test_what_is_something_else(code: str) -> None:
    check(code, HOT)


IN_A_CONDITIONAL = {
    "the branch of a device that lacks something": """
        def solve(x: Tensor):
            y = x.cpu().double() if x.device.type == "mps" else x.double()
            z = x.double() if x.device.type == "mps" else x * float(x.max())  # TPF101
            return y.abs() * z
        """,
    "a flag that holds the outcome of such a test": """
        def pick(x: Tensor, y: Tensor, n: int):
            compact = x.device.type == "cpu"
            for _ in range(n):
                if compact:
                    y = y[y > 0]
                else:
                    y = y[y > 1]  # TPF402
            return x, y
        """,
    "every so many steps": """
        def training_step(x: Tensor, step: int):
            return x.mean().item() if step % 100 == 0 else x.sum().item()  # TPF101
        """,
    "every so many steps and at the last one, as in mlfoundations/open_clip": """
        def training_step(x: Tensor, step: int, total: int):
            if step % 100 == 0 or step + 1 == total:
                print(x.mean().item())
            if step % 100 == 0 or x.sum() == total:  # TPF301
                print(x.mean().item())
            if step % 100 == 0 or total:
                print(x.max().item())  # TPF101
        """,
}


@table(IN_A_CONDITIONAL)
def test_branches_of_other_kinds(code: str) -> None:
    check(code, HOT)


def test_a_setter_is_called_seldom() -> None:
    check(
        """
        class Posterior:
            @property
            def mean(self):
                return self._mean

            @mean.setter
            def mean(self, value: Tensor):
                if value.isnan().any():
                    raise ValueError("no mean")

            def move(self, value: Tensor):
                if value.isnan().any():  # TPF301
                    raise ValueError("no mean")
        """,
        HOT,
    )
