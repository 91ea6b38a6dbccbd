"""Loaders that give each rank the whole data set (TPF512): told by wraps, samplers and loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linting import HOT, check, findings, in_package, program, table

PREVIEWED = replace(HOT, preview=True)
REPEATED = frozenset(("TPF512",))
PRELUDE = """\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Points(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.zeros(2)

"""
TRAINING = """
def train(model, loader, opt):
    for x in loader:
        model(x).sum().backward()
        opt.step()

"""
REPEATING = {
    # binbinao/physicsnemo-from-zero-to-one, issue 143: train_gpu.py
    "in one function": """
        def main(local_rank):
            dist.init_process_group("nccl")
            model = DDP(nn.Linear(2, 1).cuda(), device_ids=[local_rank])
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            loader = DataLoader(Points(9), batch_size=4, shuffle=True)  # TPF512
            for epoch in range(3):
                for step, x in enumerate(loader):
                    model(x.cuda()).sum().backward()
                    opt.step()
        """,
    # The form of pytorch/examples, distributed/ddp-tutorial-series/multigpu.py, without its sampler
    "a trainer": """
        class Trainer:
            def __init__(self, model, train_data, opt, gpu_id):
                self.train_data = train_data
                self.model = DDP(model, device_ids=[gpu_id])
                self.opt = opt

            def _run_batch(self, x):
                self.opt.zero_grad()
                self.model(x).sum().backward()
                self.opt.step()

            def _run_epoch(self, epoch):
                for x in self.train_data:
                    self._run_batch(x)

        def prepare_dataloader(dataset, batch_size):
            return DataLoader(dataset, batch_size=batch_size, shuffle=True)

        def main(rank: int, world_size: int):
            dist.init_process_group("nccl", rank=rank, world_size=world_size)
            train_data = DataLoader(Points(9), batch_size=64 // world_size)  # TPF512
            trainer = Trainer(nn.Linear(2, 1), train_data, None, rank)
            trainer._run_epoch(0)

        if __name__ == "__main__":
            mp.spawn(main, args=(2,), nprocs=2)
        """,
    "a loader that a function returns": """
        def loaders():
            train_set, held = Points(9), Points(2)
            return DataLoader(train_set), DataLoader(held)  # TPF512

        def main():
            model = DDP(nn.Linear(2, 1))
            training, testing = loaders()
            for x in training:
                model(x).sum().backward()
            for x in testing:
                model(x)
        """,
    "a sampler that is None": """
        def main():
            model = DDP(nn.Linear(2, 1))
            loader = DataLoader(Points(9), sampler=None)  # TPF512
            for x in loader:
                model(x).sum().backward()
        """,
    "a test set beside it, and a rank that prints": """
        def main():
            rank = dist.get_rank()
            model = DDP(nn.Linear(2, 1))
            train_loader = DataLoader(Points(9))  # TPF512
            test_loader = DataLoader(Points(2))
            for i, x in enumerate(train_loader):
                model(x).sum().backward()
                if rank == 0 and i % 10 == 0:
                    print("%d of %d" % (i, len(train_loader)))
            for x in test_loader:
                model(x)
        """,
}
LOOPED = """
            model = DDP(nn.Linear(2, 1))
            for x in loader:
                model(x).sum().backward()
"""


def looped(made: str) -> str:
    """A training by a loader that these statements make."""
    return (
        "def main(args, rank, world_size):\n    "
        + made.replace("\n", "\n    ")
        + LOOPED.replace("\n            ", "\n    ")
    )


WHOLE = "loader = DataLoader(Points(9), shuffle=True)"
SILENT = {
    "a sampler for ranks": "data = Points(9)\nloader = DataLoader(data, sampler=DistributedSampler(data))",
    "one that depends": "data = Points(9)\n"
    "sampler = DistributedSampler(data) if args.distributed else None\n"
    "loader = DataLoader(data, sampler=sampler)",
    "one that depends, by branches": "data = Points(9)\n"
    "if args.distributed:\n    sampler = DistributedSampler(data)\nelse:\n    sampler = None\n"
    "loader = DataLoader(data, sampler=sampler, shuffle=sampler is None)",
    "one that is not known": "loader = DataLoader(Points(9), sampler=args.sampler)",
    "options that are not known": "loader = DataLoader(Points(9), **args.options)",
    "a batch sampler": "loader = DataLoader(Points(9), batch_sampler=args.batches)",
    "in a branch": "loader = args.loader\nif not args.distributed:\n    "
    "loader = DataLoader(Points(9))",
    "prepared": f"{WHOLE}\nloader = args.accelerator.prepare(loader)",
    "prepared along": f"{WHOLE}\nnet, loader = args.accelerator.prepare(args.net, loader)",
    "set up by a fabric": f"{WHOLE}\nloader = args.fabric.setup_dataloaders(loader)",
    "given to a trainer": f"{WHOLE}\nargs.trainer.fit(args.net, loader)",
    "kept in a dict": f"{WHOLE}\nargs.loaders = {{'train': loader}}",
    "data of unknown class": "loader = DataLoader(args.data)",
    "data that is made of the rank": "loader = DataLoader(TensorDataset(torch.zeros(9), rank))",
    "a part of the data": "all = Points(9)\nindices = list(range(rank, 9, world_size))\n"
    "data = Subset(all, indices)\nloader = DataLoader(data)",
    "a part by number": "parts = torch.utils.data.random_split(Points(9), [4, 5])\n"
    "loader = DataLoader(parts[dist.get_rank()])",
    "seeded by the rank": f"torch.manual_seed(args.seed + rank)\n{WHOLE}",
    "seeded by a variable": "torch.manual_seed(int(os.environ['LOCAL_RANK']))\n" + WHOLE,
    "split by the library": f"data = split_dataset_by_node(args.data, rank, world_size)\n{WHOLE}",
}
CLASSES = {
    "an iterable data set": """
        class Stream(IterableDataset):
            def __iter__(self):
                yield torch.zeros(2)

        def main():
            loader = DataLoader(Stream())
        """,
    "a class that asks for the rank": """
        class Part(Points):
            def __getitem__(self, i):
                return torch.zeros(2) + dist.get_rank() + i * dist.get_world_size()

        def main():
            loader = DataLoader(Part(9))
        """,
}
OTHERS = {
    "no model that is wrapped": """
        def main():
            loader = DataLoader(Points(9))
            model = nn.Linear(2, 1)
            for x in loader:
                model(x).sum().backward()
        """,
    "an evaluation": """
        def main():
            loader = DataLoader(Points(9))
            model = DDP(nn.Linear(2, 1))
            for x in loader:
                print(model(x).sum())
        """,
    "rounds that belong to other ranks": """
        def main():
            rank, world_size = dist.get_rank(), dist.get_world_size()
            loader = DataLoader(Points(9))
            model = DDP(nn.Linear(2, 1))
            for i, x in enumerate(loader):
                if i % world_size != rank:
                    continue
                model(x).sum().backward()
        """,
    "a part of each batch": """
        def main():
            rank, ranks = dist.get_rank(), dist.get_world_size()
            loader = DataLoader(Points(9))
            model = DDP(nn.Linear(2, 1))
            for x in loader:
                model(x[rank::ranks]).sum().backward()
        """,
    "a loader that is wrapped": """
        def main():
            loader = DataLoader(Points(9))
            model = DDP(nn.Linear(2, 1))
            for x in Prefetcher(loader):
                model(x).sum().backward()
        """,
    # transformers.Trainer takes the data set, and makes a loader for ranks itself
    "a trainer of a library": """
        from transformers import Trainer

        def main(model, arguments):
            trainer = Trainer(model, arguments, train_dataset=Points(9))
            trainer.train()
        """,
}


@table(REPEATING)
def test_loaders_that_repeat_the_data(code: str) -> None:
    check(code, PREVIEWED, prelude=PRELUDE, only=REPEATED)
    assert not [one for one in findings(program(code, PRELUDE)) if "TPF512" in one]


def test_the_training_of_the_silent_table_is_told_without_what_silences_it() -> None:
    check(looped(WHOLE + "  # TPF512"), PREVIEWED, prelude=PRELUDE, only=REPEATED)


@table(SILENT)
def test_loaders_that_may_be_split(code: str) -> None:
    check(looped(code), PREVIEWED, prelude=PRELUDE, only=REPEATED)


@table(CLASSES)
def test_data_sets_that_may_split_themselves(code: str) -> None:
    body = "\n".join(f"        {line}" for line in LOOPED.splitlines())
    check(code.rstrip() + body.replace("        " * 2 + "    ", "            "), PREVIEWED,
          prelude=PRELUDE, only=REPEATED)  # fmt: skip


@table(OTHERS)
def test_loaders_that_repeat_nothing(code: str) -> None:
    check(code, PREVIEWED, prelude=PRELUDE, only=REPEATED)


MAKERS = {
    "trained by its caller": ("train(DDP(model), get_loader(), opt)", True),
    "of a model that is not wrapped": ("train(model, get_loader(), opt)", False),
    "prepared by its caller": ("train(DDP(model), accelerator.prepare(get_loader()), opt)", False),
}


@pytest.mark.parametrize("case", list(MAKERS.values()), ids=list(MAKERS))
def test_a_loader_made_in_another_module(case: tuple[str, bool], tmp_path: Path) -> None:
    body, told = case
    maker = f"{PRELUDE}\ndef get_loader():\n    return DataLoader(Points(9))\n"
    folder = tmp_path / "work"
    name = in_package(folder, "app/data.py", maker)
    caller = (
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        f"from ..data import get_loader\n{TRAINING}\n"
        f"def main(model, opt, accelerator):\n    {body}\n"
    )
    in_package(folder, "app/runs/main.py", caller)
    found = [one for one in findings(maker, PREVIEWED, name) if "TPF512" in one]
    assert bool(found) == told


ENGINES = {
    "trains": (TRAINING, True),
    "prepares": (TRAINING.replace("in loader", "in accelerator.prepare(loader)"), False),
    "only evaluates": (TRAINING.replace(".backward()", ""), False),
}


@pytest.mark.parametrize("case", list(ENGINES.values()), ids=list(ENGINES))
def test_a_loader_given_to_another_module(case: tuple[str, bool], tmp_path: Path) -> None:
    engine, told = case
    folder = tmp_path / "work"
    in_package(folder, "app/engines/engine.py", engine)
    main = (
        f"{PRELUDE}\nfrom ..engines.engine import train\n\n\n"
        "def main(opt):\n    train(DDP(nn.Linear(2, 1)), DataLoader(Points(9)), opt)\n"
    )
    name = in_package(folder, "app/runs/main.py", main)
    found = [one for one in findings(main, PREVIEWED, name) if "TPF512" in one]
    assert bool(found) == told
