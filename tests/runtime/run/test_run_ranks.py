"""`torchperf run` under torch's launcher: every worker is counted, and one report says how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hangs import HANG

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime.workload.ranks.shares import Shares  # noqa: E402

if os.name != "posix" or not torch.distributed.is_gloo_available():
    pytest.skip("workers are counted on POSIX, and talk by gloo here", allow_module_level=True)

# Each starts torch's launcher, and that some processes which import torch.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
TRAIN = """\
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cpu")  # the program's choice


class Images(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return scaled(torch.full((4,), float(index), device=DEVICE))


def scaled(image: torch.Tensor) -> torch.Tensor:
    return image / image.max().item()


def train(loader, rank):
    total = 0.0
    for batch in loader:
        loss = batch.square().mean()
        dist.all_reduce(loss)
        total += loss.item()
        if rank == 1:
            print(loss.detach().cpu())
    return total


def main(kind):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    context = None if kind in ("plain", "killed") else kind
    loader = DataLoader(
        Images(), batch_size=4, num_workers=rank + 1 if context else 0, multiprocessing_context=context
    )
    train(loader, rank)
    dist.barrier()
    if kind == "killed" and rank == 1:
        os.kill(os.getpid(), 9)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
"""
TORCHPERF = [sys.executable, "-m", "flake8_torchperf.cli.main"]
LAUNCH = ["torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


@pytest.fixture(scope="module", autouse=True)
def short_folder() -> Iterator[None]:
    """Where temporary files lie: sockets of DataLoader workers allow paths of 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder, pytest.MonkeyPatch.context() as at:
        at.setenv("SHORT_FOLDER", folder)
        yield


def run(folder: Path, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    if not (folder / "tmp").is_symlink():
        (folder / "tmp").symlink_to(tempfile.mkdtemp(dir=os.environ["SHORT_FOLDER"]))
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        "TMPDIR": str((folder / "tmp").readlink()), **variables,
    }  # fmt: skip
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG
    )


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith(("True", "False"))]


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(TRAIN.splitlines(), 1) if text in line)


def by_line(data: dict[str, Any], group: str) -> dict[int, dict[str, Any]]:
    return {one["line"]: one for one in data[group]}


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher under `torchperf run`, with loaders whose workers are spawned."""
    folder = tmp_path_factory.mktemp("launched")
    (folder / "train.py").write_text(TRAIN)
    files = ["--json", "run.json", "--html", "rank-{rank}.html", "--output", "rank-{rank}.txt"]
    files += ["--save-profile", "profile-{rank}.json"]
    done = run(folder, [*TORCHPERF, "run", *files, "-m", *LAUNCH, "train.py", "spawn"])
    assert done.returncode == 0, done.stderr
    return folder


class TestLauncher:
    def test_a_statement_has_the_sum_over_the_ranks(self, launched: Path) -> None:
        data = json.loads((launched / "run.json").read_text())
        total = by_line(data, "confirmed")[line_of("total += loss.item()")]
        assert (total["counter"], total["count"]) == ("host_reads", 4)
        assert total["ranks"]["counts"] == {"0": 2, "1": 2}
        assert total["seconds"] == pytest.approx(sum(total["ranks"]["seconds"].values()))
        assert total["ranks"]["spread"]["count"] == 0

    def test_what_one_rank_alone_does_is_the_slowest_rank_s(self, launched: Path) -> None:
        data = json.loads((launched / "run.json").read_text())
        ranks = by_line(data, "confirmed")[line_of("print(loss")]["ranks"]
        assert ranks["counts"] == {"0": 0, "1": ranks["spread"]["count"]}
        assert ranks["slowest"] == 1
        assert ranks["spread"]["seconds"] == ranks["seconds"]["1"] > 0

    def test_each_rank_is_described(self, launched: Path) -> None:
        data = json.loads((launched / "run.json").read_text())
        assert [(one["rank"], one["ended"]) for one in data["ranks"]] == [
            (0, "returned"), (1, "returned"),
        ]  # fmt: skip
        reads = sum(one["totals"]["host_reads"] for one in data["ranks"])
        assert data["totals"]["host_reads"] == reads
        assert data["notes"] == []

    def test_workers_of_data_loaders_are_told_apart(self, launched: Path) -> None:
        workers_are_told_apart(launched)
        texts = [(launched / f"rank-{rank}.txt").read_text() for rank in (0, 1)]
        assert ["data workers: 1 processes" in one for one in texts] == [True, False]
        assert ["data workers: 2 processes" in one for one in texts] == [False, True]

    def test_a_name_with_the_rank_makes_a_file_for_each(self, launched: Path) -> None:
        folder = launched
        texts = [(folder / f"rank-{rank}.txt").read_text() for rank in (0, 1)]
        assert ["not reached: " in one for one in texts] == [True, False]
        assert all("slowest rank" not in one for one in texts)
        assert (folder / "rank-0.html").exists()
        assert (folder / "rank-1.html").exists()

    def test_a_profile_counts_how_often_lines_ran_in_each_rank(self, launched: Path) -> None:
        ran = []
        for rank in (0, 1):
            entries = json.loads((launched / f"profile-{rank}.json").read_text())["files"]
            lines = {one["line"]: one["times"] for one in entries["train.py"]}
            ran.append((lines[line_of("total += loss")], lines.get(line_of("print(loss"), 0)))
        assert ran == [(2, 0), (2, 2)]

    def test_nothing_is_left_behind(self, launched: Path) -> None:
        assert list((launched / "tmp").glob("torchperf-*")) == []


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["fork", "forkserver"])
def test_workers_that_start_otherwise_are_told_apart(tmp_path: Path, kind: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    done = run(tmp_path, [*TORCHPERF, "run", "--json", "run.json", "-m", *LAUNCH, "train.py", kind])
    workers_are_told_apart(tmp_path)
    assert "data workers: 3 processes" in done.stderr


def workers_are_told_apart(folder: Path) -> None:
    data = json.loads((folder / "run.json").read_text())
    workers = sorted((one["rank"], one["worker"]) for one in data["data_workers"])
    assert workers == [(0, 0), (1, 0), (1, 1)]
    assert [one["rank"] for one in data["ranks"]] == [0, 1]
    # Each of the two loaders reads eight items, in its workers.
    assert sum(one["totals"]["host_reads"] for one in data["data_workers"]) == 16
    assert by_line(data, "confirmed")[line_of("total += loss")]["count"] == 4
    in_workers = by_line(data, "undecided")[line_of("return image /")]
    assert "workers of a DataLoader" in in_workers["reason"]


@pytest.mark.thorough
def test_a_rank_that_was_killed_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    command = [*TORCHPERF, "run", "--json", "r.json", "-m", *LAUNCH, "train.py", "killed"]
    done = run(tmp_path, command)
    assert done.returncode == 1
    data = json.loads((tmp_path / "r.json").read_text())
    assert "the recording of rank 1 is missing: killed, or os._exit" in data["notes"]
    assert by_line(data, "confirmed")[line_of("total += loss.item()")]["count"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", pytest.param("killed", marks=pytest.mark.thorough)])
def test_a_torchperf_in_each_rank_gives_one_report(tmp_path: Path, kind: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    inner = [*TORCHPERF, "run", "--json", "r.json", "--html", "{rank}.html", "train.py", kind]
    done = run(tmp_path, [sys.executable, "-m", *LAUNCH, "--no-python", *inner])
    assert done.stderr.count("\ntorchperf run: ") == 1
    assert list((tmp_path / "tmp").glob("torchperf-*")) == []
    data = json.loads((tmp_path / "r.json").read_text())
    total = by_line(data, "confirmed")[line_of("total += loss.item()")]
    if kind == "plain":
        assert done.returncode == 0, done.stderr
        assert total["ranks"]["counts"] == {"0": 2, "1": 2}
        assert sorted(one.name for one in tmp_path.glob("*.html")) == ["0.html", "1.html"]
    else:
        assert total["count"] == 2
        assert any("rank 1 is missing" in one for one in data["notes"])


@pytest.mark.thorough
def test_processes_that_torch_spawns_are_counted_by_their_rank(tmp_path: Path) -> None:
    (tmp_path / "spawn.py").write_text(
        "import torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
        "def work(rank, store):\n"
        "    dist.init_process_group('gloo', init_method=store, rank=rank, world_size=2)\n"
        "    step(torch.ones(3, device=torch.device('cpu')), 3 + rank)\n"
        "    dist.destroy_process_group()\n\n\n"
        "def step(loss: torch.Tensor, times: int):\n"
        "    return [loss.sum().item() for _ in range(times)]\n\n\n"
        f"if __name__ == '__main__':\n    mp.spawn(work, args=('file://{tmp_path}/store',), nprocs=2)\n"
    )
    files = ["--json", "r.json", "--save-profile", "profile.json"]
    done = run(tmp_path, [*TORCHPERF, "run", *files, "spawn.py"])
    assert done.returncode == 0, done.stderr
    profile = json.loads((tmp_path / "profile.json").read_text())
    (step,) = (one for one in profile["files"]["spawn.py"] if one["line"] == 13)
    assert (step["runs"], step["waits"]) == (2, 7)
    data = json.loads((tmp_path / "r.json").read_text())
    assert by_line(data, "confirmed")[13]["ranks"]["counts"] == {"0": 3, "1": 4}


class TestOtherProcesses:
    @pytest.mark.parametrize(
        "workload",
        [["main.py"], pytest.param(["-m", "pytest", "-qs", "main.py"], marks=pytest.mark.thorough)],
    )
    def test_a_helper_that_the_program_starts_is_left_alone(
        self, tmp_path: Path, workload: list[str]
    ) -> None:
        (tmp_path / "helper.py").write_text("import sys\nprint('torch' in sys.modules, sys.path)\n")
        (tmp_path / "main.py").write_text(
            "import subprocess, sys\n\n\ndef test_helper():\n"
            "    for options in (['helper.py'], ['-m', 'helper'], ['-c', 'import helper']):\n"
            "        subprocess.run([sys.executable, *options], check=True)\n\n\n"
            "if __name__ == '__main__':\n    test_helper()\n"
        )
        alone = told(run(tmp_path, [sys.executable, *workload]))
        assert told(run(tmp_path, [*TORCHPERF, "run", *workload])) == alone
        assert [one.split()[0] for one in alone] == ["False"] * 3

    @pytest.mark.thorough
    def test_a_launcher_that_gives_no_rank_names_its_script(self, tmp_path: Path) -> None:
        """`accelerate launch` does so where there is one process."""
        (tmp_path / "site-packages").mkdir()
        (tmp_path / "site-packages" / "launcher.py").write_text(
            "import subprocess, sys\n"
            "raise SystemExit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)\n"
        )
        (tmp_path / "train.py").write_text(
            "import sys\nimport torch\n\n\ndef read(x: torch.Tensor):\n    return x.item()\n\n\n"
            "read(torch.ones(1, device=torch.device('cpu')))\nsys.exit(3)\n"
        )
        path = os.pathsep.join([str(ROOT), str(tmp_path / "site-packages")])
        command = [*TORCHPERF, "run", "--json", "r.json", "-m", "launcher", "train.py"]
        done = run(tmp_path, command, PYTHONPATH=path)
        assert done.returncode == 3
        data = json.loads((tmp_path / "r.json").read_text())
        assert by_line(data, "confirmed")[6]["count"] == 1

    @pytest.mark.thorough
    def test_the_site_s_own_customisation_still_runs(self, tmp_path: Path) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text("CUSTOM = 'theirs'\n")
        (tmp_path / "main.py").write_text(
            "import subprocess, sys\n"
            "code = 'import sitecustomize, sys; print(sitecustomize.CUSTOM, sys.path)'\n"
            "subprocess.run([sys.executable, '-c', code], check=True)\n"
        )
        path = os.pathsep.join([str(ROOT), str(tmp_path / "site")])
        alone = run(tmp_path, [sys.executable, "main.py"], PYTHONPATH=path)
        watched = run(tmp_path, [*TORCHPERF, "run", "main.py"], PYTHONPATH=path)
        assert watched.stdout == alone.stdout
        assert alone.stdout.startswith("theirs ")

    @pytest.mark.thorough
    def test_a_worker_keeps_its_interpreter_s_options(self, tmp_path: Path) -> None:
        (tmp_path / "worker.py").write_text(
            "import sys\nprint(sys.flags, sys.warnoptions, sys.argv[1:], __name__)\n"
        )
        (tmp_path / "main.py").write_text(
            "import os, subprocess, sys\nos.environ['RANK'] = '0'\n"
            "for options in (['-u', 'worker.py'], ['-uWerror', '-m', 'worker'], ['-um', 'worker']):\n"
            "    subprocess.run([sys.executable, *options, '-x', 'a b'], check=True)\n"
        )
        alone = run(tmp_path, [sys.executable, "main.py"])
        watched = run(tmp_path, [*TORCHPERF, "run", "--json", "r.json", "main.py"])
        assert watched.stdout == alone.stdout != ""
        data = json.loads((tmp_path / "r.json").read_text())
        assert [one["rank"] for one in data["ranks"]] == [0]

    @pytest.mark.thorough
    def test_a_command_that_the_shell_finds_is_a_workload(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("import os\nprint('rank', os.environ['RANK'])\n")
        words = ["torchrun", "--standalone", "--nproc_per_node", "1", "train.py"]
        scripts = sysconfig.get_path("scripts")
        path = os.pathsep.join([scripts, os.environ["PATH"]])
        if not Path(scripts, "torchrun").exists():
            pytest.skip("torch is installed without its commands")
        done = run(tmp_path, [*TORCHPERF, "run", *words], PATH=path)
        assert (done.returncode, done.stdout) == (0, "rank 0\n"), done.stderr

    def test_where_no_line_of_the_user_s_ran_the_report_says_so(self, tmp_path: Path) -> None:
        done = run(tmp_path, [*TORCHPERF, "run", "-m", "this"])
        assert "note: no line of yours ran where it is counted; --owner names" in done.stderr


def test_shares_of_a_run_that_times_nothing_compare_counts() -> None:
    shares = Shares({0: 3, 1: 7, 2: 7}, {0: 0.0, 1: 0.0, 2: 0.0})
    assert (shares.slowest, shares.count_spread, shares.spread) == (1, 4, 0.0)
