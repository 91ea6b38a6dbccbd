"""Threads: what they do is counted as what the main thread does, by `run` and by budgets."""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import COMMAND, torchperf

torch = pytest.importorskip("torch")

from flake8_torchperf import BudgetExceeded, DispatchCounter, dispatch_budget  # noqa: E402

HEAD = "import asyncio, os, threading, time\nimport torch\n"
SERVE = HEAD + dedent(
    """
    from concurrent.futures import ThreadPoolExecutor
    from multiprocessing.pool import ThreadPool

    def serve(weight, times):
        for step in range(times):
            value = (weight * step).sum().item()

    def one(weight):
        return weight.sum().item()

    async def main(weight):
        loop = asyncio.get_running_loop()
        for step in range(5):
            await loop.run_in_executor(None, one, weight)

    weight = torch.nn.Parameter(torch.ones(4))
    """
)


# Not the command that `fork_server` forks: how a process ends is its own.
STARTED = (sys.executable, "-m", "flake8_torchperf")


def run(
    folder: Path, program: str, *options: str, start: tuple[str, ...] = STARTED
) -> tuple[dict[str, Any], str]:
    """Return the report of `torchperf run` of a program, and its standard error."""
    (folder / "serve.py").write_text(program, encoding="utf-8")
    words = ("run", "--json", "report.json", *options, "serve.py")
    done = torchperf(*words, cwd=folder, program=start)
    assert done.status == 0, done.errors
    return json.loads((folder / "report.json").read_text(encoding="utf-8")), done.errors


def waits(folder: Path) -> dict[str, tuple[int, int]]:
    """Return how often each statement of the saved profile ran and waited, by its text."""
    data = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
    return {one["text"]: (one["times"], one["waits"]) for one in data["files"]["serve.py"]}


@pytest.mark.parametrize("level", ["full", "reads"])
def test_reads_in_threads_and_pools_count(tmp_path: Path, level: str) -> None:
    program = SERVE + dedent(
        """
        thread = threading.Thread(target=serve, args=(weight, 10))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, [weight] * 7))
        with ThreadPool(2) as pool:
            pool.map(one, [weight] * 3)
        asyncio.run(main(weight))
        threading.Thread(target=serve, args=(weight, 20)).start()
        """
    )
    data, _ = run(
        tmp_path, program, "--level", level, "--save-profile", "profile.json", start=COMMAND
    )
    assert data["totals"]["host_reads"] == 45
    of = waits(tmp_path)
    # Python waits at its end for the thread that nothing joins; so does the recorder.
    assert of["value = (weight * step).sum().item()"] == (30, 30)
    assert of["return weight.sum().item()"] == (15, 15)


def test_a_thread_that_outlives_the_run_ends_quietly(tmp_path: Path) -> None:
    program = SERVE + dedent(
        """
        def forever():
            serve(weight, 4)
            done.set()
            threading.Event().wait()

        done = threading.Event()
        threading.Thread(target=forever, daemon=True).start()
        done.wait()
        """
    )
    data, error = run(tmp_path, program)
    assert data["totals"]["host_reads"] == 4
    assert "Fatal" not in error
    assert "Traceback" not in error


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_is_told_not_to_be_counted(tmp_path: Path) -> None:
    program = SERVE + dedent(
        """
        if not (child := os.fork()):
            serve(weight, 5)
            os._exit(0)
        os.waitpid(child, 0)
        one(weight)
        """
    )
    data, error = run(tmp_path, program, "--save-profile", "profile.json", start=COMMAND)
    assert data["totals"]["host_reads"] == 1
    assert "note: os.fork was called 1x: the forked processes are not counted\n" in error
    assert "value = (weight * step).sum().item()" not in waits(tmp_path)


def test_other_programs_are_told_not_to_be_counted(tmp_path: Path) -> None:
    program = SERVE + dedent(
        """
        import subprocess
        import sys
        subprocess.run([sys.executable, "-c", "print()"], check=True)
        subprocess.run(["true"], check=True)
        one(weight)
        """
    )
    data, error = run(tmp_path, program, start=COMMAND)
    assert data["totals"]["host_reads"] == 1
    assert "note: 1 other Python programs were started: they are not counted\n" in error


def read_in_thread() -> None:
    thread = threading.Thread(target=torch.ones(3).sum().item)
    thread.start()
    thread.join()


def test_a_budget_counts_the_threads_of_its_block() -> None:
    exceeded = pytest.raises(BudgetExceeded, match="1 host read, 0 allowed")
    with exceeded, dispatch_budget(max_host_reads=0):
        read_in_thread()
    with dispatch_budget(max_host_reads=1) as counter:
        read_in_thread()
    assert counter.evidence.totals.host_reads == 1


@pytest.mark.parametrize("level", ["full", "reads"])
def test_a_pool_that_ran_before_is_counted_for_what_is_submitted(level: Any) -> None:
    x = torch.ones(3)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(x.sum).result()
        with DispatchCounter(level) as counter:
            pool.submit(lambda: x.sum().item()).result()
        pool.submit(lambda: x.sum().item()).result()
        with DispatchCounter(level) as again:
            pool.submit(lambda: [x.sum().item() for _ in range(3)]).result()
    assert counter.evidence.totals.host_reads == 1
    assert again.evidence.totals.host_reads == 3


@pytest.mark.parametrize("level", ["full", "reads"])
def test_a_closed_counter_counts_no_thread_any_longer(level: Any) -> None:
    x, closed = torch.ones(3), threading.Event()

    def work() -> None:
        x.sum().item()
        begun.set()
        closed.wait()
        x.sum().item()

    begun = threading.Event()
    with DispatchCounter(level) as counter:
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
    closed.set()
    thread.join()
    assert counter.evidence.totals.host_reads == 1


def test_a_thread_of_somebody_else_is_not_counted() -> None:
    """Two counters in two threads that run at the same time count each its own."""
    x, counted, seen = torch.ones(3), threading.Event(), []

    def other() -> None:
        counted.wait()
        with DispatchCounter("reads") as counter:
            read_in_thread()
            read_in_thread()
        seen.append(counter.evidence.totals.host_reads)

    thread = threading.Thread(target=other)
    thread.start()
    with DispatchCounter("reads") as counter:
        x.sum().item()
        counted.set()
        thread.join()
    assert (counter.evidence.totals.host_reads, seen) == (1, [2])


def test_nothing_stays_wrapped() -> None:
    before = dict(vars(threading.Thread))
    with DispatchCounter("reads"):
        read_in_thread()
    assert dict(vars(threading.Thread)) == before


def test_counts_of_many_threads_at_once_add_up() -> None:
    x = torch.ones(3)

    def work() -> None:
        for _ in range(50):
            x.sum().item()

    with DispatchCounter() as counter:
        for _ in range(3):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
    assert counter.evidence.totals.host_reads == 600
