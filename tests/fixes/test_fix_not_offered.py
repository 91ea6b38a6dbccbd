"""Fixes that would be wrong for some caller or path: none is offered, nor advised."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixing import SHOWN, UNSAFE, check_fix, outcome, rows
from linting import ALL, HOT, program

from flake8_torchperf.fixes.engine.rounds import fixed
from flake8_torchperf.linter import lint

# A name that is a tensor on one path only, and a number or anything else on the others.
PARTLY = {
    # facebookresearch/audiocraft, audiocraft/optim/dadam.py: a float unless FSDP is used.
    "a bound that is a number without FSDP": """
        def step(params: list[nn.Parameter], d, growth_rate, fsdp_in_use, numerator):
            d_hat = d
            if fsdp_in_use:
                d_hat = torch.zeros(2, device="cuda").sum() / numerator
            return max(d, min(d_hat, d * growth_rate))
        """,
    "totals of a loop that may run no round": """
        def evaluate(model: nn.Module, loader):
            total, other = 0.0, 0.0
            for x in loader:
                loss = model(x).mean().detach()
                total = total + loss
                other = other + loss ** 2
            return float(total), float(other)
        """,
    "a loss that is a number where nothing is given": """
        def losses(x: Tensor, y: Tensor, n: int):
            loss = x.mean() if n > 0 else 0
            return max([loss, y.mean()]), float(loss), float(y.mean())
        """,
    "a total of several numbers": """
        def largest(terms: list[Tensor]):
            worst = 0.0
            for term in terms:
                worst = max(worst, term.norm() * 2)
            return worst
        """,
}


@rows(PARTLY)
def test_what_may_be_a_number_is_no_tensor(row: str) -> None:
    check_fix(row, "", UNSAFE)


def test_a_tensor_that_a_test_shows_is_one() -> None:
    check_fix(
        """
        def step(x: Tensor, bound):
            scale = bound
            if bound is None:
                scale = x.norm()
            if isinstance(scale, torch.Tensor):
                return max(scale, 1.0)
            return scale
        """,
        """
        def step(x: Tensor, bound):
            scale = bound
            if bound is None:
                scale = x.norm()
            if isinstance(scale, torch.Tensor):
                return scale.clamp(min=1.0)
            return scale
        """,
        UNSAFE,
        code="TPF103",
    )


def test_the_advice_does_not_stack_numbers() -> None:
    source = program(PARTLY["a loss that is a number where nothing is given"])
    told = [f.message for f in lint(source, "model.py", HOT)]
    assert told
    assert not any("stack them for one .tolist()" in one or "torch.stack(" in one for one in told)


WHERE = """
    def f(x: Tensor, y: Tensor):
        {zero}
        return {choice}
    """
# torch.where(c, x, torch.zeros(())) copies the number to the device in each call.
ON_HOST = {
    "in place": ("n = 1", "x if x.sum() > 0 else torch.zeros(())"),
    "under a name": ("zero = torch.tensor(0.0)", "x if x.sum() > 0 else zero"),
}


@pytest.mark.parametrize(("zero", "choice"), ON_HOST.values(), ids=ON_HOST)
def test_a_side_on_the_host_is_not_chosen_on_the_device(zero: str, choice: str) -> None:
    check_fix(WHERE.format(zero=zero, choice=choice), "", UNSAFE, code="TPF301")


def test_a_side_on_the_device_is() -> None:
    zero = "torch.zeros((), device=x.device)"
    before = WHERE.format(zero="n = 1", choice=f"x if x.sum() > 0 else {zero}")
    after = WHERE.format(zero="n = 1", choice=f"torch.where(x.sum() > 0, x, {zero})")
    check_fix(before, after, UNSAFE, code="TPF301")


# Memory that is written again before the copy has read it.
KEPT_MEMORY = {
    "a view of a buffer that an allocator owns": """
        class Arena:
            def __init__(self):
                self.mem = torch.empty(1 << 20, pin_memory=True)

            def alloc(self, n):
                return self.mem[:n]

            def upload(self, batches):
                for batch in batches:
                    view = self.alloc(len(batch))
                    view.copy_(batch)
                    yield view.to("cuda")
        """,
    "a buffer made before the loop": """
        def upload(batches):
            staging = torch.empty(64, pin_memory=True)
            for batch in batches:
                staging.copy_(batch)
                yield staging.to("cuda")
        """,
    "written right behind": """
        def upload(batch: Tensor):
            staging = batch.pin_memory()
            x = staging.to("cuda")
            staging.zero_()
            return x
        """,
    "an attribute": """
        class Model(nn.Module):
            def __init__(self):
                self.staging = torch.empty(64, pin_memory=True)

            def forward(self, x):
                return x + self.staging.to("cuda")
        """,
}


@rows(KEPT_MEMORY)
def test_memory_that_lives_on_is_waited_for(row: str) -> None:
    check_fix(row, "", UNSAFE, code="TPF503")


def test_memory_that_each_round_pins_is_not() -> None:
    code = """
        def upload(batches: list[Tensor]):
            for batch in batches:
                staging = batch.pin_memory()
                yield staging.to("cuda"{})
        """
    check_fix(code.format(""), code.format(", non_blocking=True"), UNSAFE, code="TPF503")


MASKS = """
    def keep(scores: Tensor, boxes: Tensor, labels: Tensor, ids: Tensor, limit: float):
        {shown}
        mask = {mask}
        {then}
        boxes = boxes[{index}]
        labels = labels[{index}]
        return boxes, labels
    """
# What shows that the mask has dimensions, so that its positions select as the mask does.
SHOWN_MASKS = {
    "a slice": ("n = 1", "boxes[:, 4] > limit"),
    "a length": ("n = len(scores)", "scores > limit"),
    "a shape": ("n, _ = ids.shape", "ids.isnan() | (ids > limit)"),
    "a size": ("n = ids.size(0)", "~torch.isin(ids, boxes)"),
    "a reduction of rows": ("n = 1", "(boxes > 0).all(dim=1)"),
    "a loop": ("for one in scores:\n            print(1)", "scores > limit"),
}
NOT_SHOWN_MASKS = {
    "nothing": ("n = 1", "scores > limit"),
    "a reduction of perhaps one dimension": ("n = 1", "(boxes > 0).all(-1)"),
    "the shape of another": ("n = len(labels)", "scores > limit"),
    "a name of the module": ("n = 1", "scores > math.pi * F"),
}


@pytest.mark.parametrize(("shown", "mask"), SHOWN_MASKS.values(), ids=SHOWN_MASKS)
def test_positions_of_a_mask_with_dimensions(shown: str, mask: str) -> None:
    done = outcome(program(_masked(shown, mask)), UNSAFE, ALL, code="TPF402")
    assert done.text.count("torch.where(mask)") == 1


@pytest.mark.parametrize(("shown", "mask"), NOT_SHOWN_MASKS.values(), ids=NOT_SHOWN_MASKS)
def test_no_positions_of_a_mask_that_may_have_none(shown: str, mask: str) -> None:
    check_fix(_masked(shown, mask), "", UNSAFE, code="TPF402")


def _masked(shown: str, mask: str) -> str:
    return MASKS.format(shown=shown, mask=mask, then="n = 0", index="mask")


def test_positions_of_a_mask_without_dimensions_select_something_else() -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.arange(3.0), torch.tensor(True)
    assert x[mask].shape == (1, 3)
    assert x[torch.where(mask)].shape == (1,)


LOWER = {
    "one component decides": "rows[rows[:, 0] > 0] = rows[rows[:, 0] > 0] * 2",
    "any of a row": "bad = rows.isnan().any(-1)\n        rows[bad] = rows[bad] * 2",
    "by its shape": (
        "h, w = m.shape\n        a, b, c = rows.shape\n"
        "        on = m.bool()\n        h, w = on.shape\n        rows[on] = rows[on] * 2"
    ),
}


@rows(LOWER)
def test_a_mask_with_fewer_dimensions_is_no_shape(row: str) -> None:
    code = f"""
    def halve(rows: Tensor, m: Tensor):
        {row}
        return rows
    """
    found = outcome(program(code), SHOWN, ALL, code="TPF403").first
    assert [edit.name for one in found for edit in one.edits if edit.safety == "suggested"] == []


TOTAL = program(
    """
    def epoch(loader, model: nn.Module):
        total = 0.0
        for batch in loader:
            loss = model(batch).mean()
            total += loss.item()
        return total
    """
)


@pytest.mark.parametrize(("other", "cast"), [("mps", ".float()"), ("cuda", ".double()")])
def test_totals_have_a_dtype_that_all_devices_of_the_project_have(
    tmp_path: Path, other: str, cast: str
) -> None:
    for name in ("pyproject.toml", "model.py"):
        (tmp_path / name).write_text("" if name.endswith("toml") else TOTAL, encoding="utf-8")
    device = f'import model\nDEVICE = "{other}"\n'
    (tmp_path / "devices.py").write_text(device, encoding="utf-8")
    path = str(tmp_path / "model.py")
    done = fixed(TOTAL, lambda text: lint(text, path, ALL, UNSAFE.safeties), UNSAFE)
    assert f"loss.detach(){cast}" in done.text


LOADERS = {
    "a setting decides": "num_workers=config.workers, pin_memory=config.pin",
    "a lambda collates": "collate_fn=lambda rows: rows, pin_memory=True",
}


@rows(LOADERS)
def test_settings_of_a_loader_are_kept(row: str) -> None:
    code = f"""
    from torch.utils.data import DataLoader, Dataset

    class Config:
        workers = 0
        pin = False

    config = Config()

    class Images(Dataset):
        pass

    def train(model: nn.Module):
        model.cuda()
        return DataLoader(Images(), {row})
    """
    check_fix(code, "", SHOWN, code="TPF505")


def test_reads_in_a_row_are_joined_where_one_finding_names_them() -> None:
    code = program(
        """
        def train_step(model: nn.Module, x: Tensor, optimizer):
            loss = model(x).mean()
            loss.backward()
            optimizer.step()
            a = loss.item()
            b = loss.std().item()
            return a, b
        """
    )
    done = outcome(code, UNSAFE, HOT)
    assert [f.code for f in done.first if "stack them" in f.message] == []  # one at a time here
    assert "torch.stack([loss, loss.std()]).tolist()" in done.text


LEFT = {
    "in the statement": "assert torch.all(rates == rates[0].item())",
    "in the next one": "assert torch.all(rates > 0)\n        n = int(rates.sum())",
}


@rows(LEFT)
def test_a_wait_that_is_left_makes_the_fix_no_gain(row: str) -> None:
    code = f"""
    def forward_step(rates: Tensor):
        {row}
        return rates.exp()
    """
    check_fix(code, "", UNSAFE)


UNSURE = {
    # kohya-ss/sd-scripts, gen_img.py: None without guidance, and then nothing is added.
    "a piece that may be None, and added to in a branch": """
        def join(embeds: list, x: Tensor, guided: bool):
            whole = embeds[0]
            for i in range(1, 3):
                if guided:
                    whole = torch.cat([whole, x[i] * 2], dim=1)
            return whole
        """,
    # RVC-Boss/GPT-SoVITS, GPT_SoVITS/export_torch_script.py: TorchScript refuses `x.tolist()`.
    "a function that TorchScript compiles": """
        @torch.jit.script
        def repeat(x: Tensor, counts: Tensor):
            out = []
            for i in range(counts.shape[0]):
                out.append(x[i].repeat(counts[i].item(), 1))
            return out
        """,
}


@rows(UNSURE)
def test_what_would_fail_on_some_path_is_not_offered(row: str) -> None:
    check_fix(row, "", UNSAFE)
