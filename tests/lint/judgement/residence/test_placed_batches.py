"""Batches that accelerate, Fabric or Lightning move lie on the device, and what a loop leaves doesn't."""

from __future__ import annotations

import pytest
from linting import check

BRANCHES = frozenset(("TPF301",))

LIGHTNING = """
    import {imported}

    class Net({base}):
        def {method}(self, batch, batch_idx):
            x, y = batch
            if y.max() > 3:  {mark}
                print(x)
            return y.cuda()
    """


@pytest.mark.parametrize(
    ("imported", "base", "method", "told"),
    [
        ("lightning.pytorch as pl", "pl.LightningModule", "training_step", True),
        ("pytorch_lightning as pl", "pl.LightningModule", "training_step", True),
        # Without a trainer that moves it, the move below shows that it lies on the host before.
        ("lightning.pytorch as pl", "pl.LightningModule", "forward", False),
        ("torch", "torch.nn.Module", "training_step", False),
    ],
)
def test_the_trainer_has_moved_its_batch(imported: str, base: str, method: str, told: bool) -> None:
    mark = "# TPF301" if told else ""
    check(LIGHTNING.format(imported=imported, base=base, method=method, mark=mark), only=BRANCHES)


@pytest.mark.parametrize(
    ("prepared", "batches"),
    [
        ("model, opt, loader = accelerator.prepare(model, opt, loader)", "loader"),
        ("model, opt, loader = accelerator.prepare(model, opt, loader)", "tqdm(loader)"),
        ("loader = accelerator.prepare_data_loader(loader)", "loader"),
        ("loader = accelerator.prepare(loader); many = cycle(loader)", "many"),
        ("loader = fabric.setup_dataloaders(loader)", "loader"),
        ("self.loader = accelerator.prepare(loader)", "self.loader"),
        ("accelerator.prepare(model)", "loader"),
        ("loader = accelerator.gather(loader)", "loader"),
    ],
)
def test_a_prepared_loader_moves_its_batches(prepared: str, batches: str) -> None:
    library = "lightning.fabric" if "fabric" in prepared else "accelerate"
    moved = "gather" not in prepared and "= " in prepared
    mark = "# TPF301" if moved else ""
    source = f"""
        from {library} import Something

        class Trainer:
            def train(self, accelerator, fabric, model, opt, loader):
                {prepared}
                for batch in {batches}:
                    mask = batch["mask"]
                    if mask.any():  {mark}
                        mask = mask.to(self.device)
                    model(batch).sum().backward()
                    opt.step()
        """
    check(source, only=BRANCHES)


# ByteTrack, yolox/evaluators/mot_evaluator.py: of a batch, only the images are moved
LEFT = """
    def evaluate(model: torch.nn.Module, batches, device, half):
        kind = torch.cuda.HalfTensor if half else torch.cuda.FloatTensor
        for number, (images, sizes) in enumerate(batches):
            {moved}
            y = model(images)
            if sizes.max() > 3:  {mark}
                print(y)
    """


@pytest.mark.parametrize(
    ("moved", "left"),
    [
        ("images = images.cuda()", True),
        ("images = images.to(device)", True),
        ("images = images.type(kind)", True),
        ("if half: images = images.to(device=device)", True),
        ("images = images.type(torch.float32)", False),
        ("images, sizes = images.cuda(), sizes.cuda()", False),
        ("images = images.cuda(); sizes = model(images)", False),
        ("pass", False),
    ],
)
def test_a_loop_that_moves_a_part_leaves_the_others(moved: str, left: bool) -> None:
    mark = "" if left else "# TPF301"
    check(LEFT.format(moved=moved, mark=mark), only=BRANCHES)
