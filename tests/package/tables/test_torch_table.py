"""The table of torch: facts a reader can check against torch's documentation, and its regeneration."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hangs import HANG

from flake8_torchperf.knowledge import table as table_module
from flake8_torchperf.knowledge.overloads import parse_overload
from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    ListReturn,
    TensorReturn,
    common_return,
    parse_return,
    render_return,
)
from flake8_torchperf.knowledge.table import TABLE_PATH, Op, TorchTable, load

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools")]

from torch_table import releases  # noqa: E402

GENERATOR = ROOT / "tools" / "generate_torch_table.py"


@pytest.fixture(scope="module")
def table() -> TorchTable:
    return load()


def find(table: TorchTable, name: str) -> Op:
    """`.item` is a Tensor method, anything else a function; an unknown name fails the test."""
    op = table.method(name[1:]) if name.startswith(".") else table.function(name)
    assert op is not None, f"the table has no {name}"
    return op


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.distributions.normal.Normal", "torch.distributions.Normal"),
        ("torch.utils.data.sampler.Sampler", "torch.utils.data.Sampler"),
        ("torch.nn.parallel.data_parallel.DataParallel", "torch.nn.DataParallel"),
        ("torch.nn.modules.fold.Fold", "torch.nn.Fold"),
    ],
)
def test_a_class_is_known_by_the_module_that_defines_it(
    name: str, canonical: str, table: TorchTable
) -> None:
    found = table.klass(name)
    assert found is not None
    assert found.qualified == canonical


# name, kinds of the positional arguments, keywords with their kinds, the return
RETURNS = [
    ("torch.isnan", "T", {}, "Tb="),
    ("torch.isfinite", "T", {}, "Tb="),
    ("torch.eq", "T T", {}, "Tb^"),
    ("torch.lt", "T n", {}, "Tb="),
    ("torch.logical_and", "T T", {}, "Tb^"),
    ("torch.isin", "T T", {}, "Tb="),
    ("torch.bitwise_and", "T T", {}, "T^^"),
    ("torch.all", "T", {}, "Tb0"),
    ("torch.any", "T", {"dim": "i"}, "Tb?"),
    ("torch.any", "T i", {"keepdim": "1"}, "Tb="),
    ("torch.bernoulli", "T", {}, "Tf="),
    ("torch.add", "T T", {}, "T^^"),
    ("torch.mul", "T f", {}, "T^="),
    ("torch.div", "T T", {}, "Tf^"),
    ("torch.sum", "T", {}, "Tn0"),
    ("torch.sum", "T i", {}, "Tn?"),
    ("torch.sum", "T", {"dtype": "Y"}, "T?0"),
    ("torch.argmax", "T", {}, "Ti0"),
    ("torch.argmax", "T i", {}, "Ti?"),
    ("torch.max", "T", {}, "T=0"),
    ("torch.max", "T i", {}, "<values:T=?,indices:Ti?>"),
    ("torch.max", "T", {"dim": "x"}, "<values:T=?,indices:Ti?>"),
    ("torch.max", "T T", {}, "T^^"),
    ("torch.max", "T x", {}, "?"),
    ("torch.topk", "T i", {}, "<values:T==,indices:Ti=>"),
    ("torch.sort", "T", {"descending": "b"}, "<values:T==,indices:Ti=>"),
    ("torch.std_mean", "T", {}, "(Tf0,T=0)"),
    ("torch.linalg.svd", "T", {}, "<U:T==,S:Tf?,Vh:T==>"),
    ("torch.linalg.inv", "T", {}, "T=="),
    ("torch.split", "T i", {}, "[T==]"),
    ("torch.chunk", "T i", {}, "[T==]"),
    ("torch.unbind", "T", {}, "[T=?]"),
    ("torch.meshgrid", "T T", {}, "[T=?]"),
    ("torch.broadcast_tensors", "T T", {}, "[T?^]"),
    ("torch.atleast_1d", "T", {}, "T=?"),
    ("torch.atleast_1d", "T T", {}, "[T??]"),
    ("torch.where", "T T T", {}, "T^^"),
    ("torch.where", "T", {}, "[Ti?]"),
    ("torch.nonzero", "T", {}, "Ti?"),
    ("torch.nonzero", "T", {"as_tuple": "1"}, "[Ti?]"),
    ("torch.unique", "T", {}, "T=?"),
    ("torch.unique", "T", {"return_inverse": "1"}, "(T=?,Ti=)"),
    ("torch.unique", "T", {"return_inverse": "1", "return_counts": "1"}, "(T=?,Ti=,Ti?)"),
    ("torch.unique", "T", {"return_inverse": "0"}, "T=?"),
    ("torch.unique", "T", {"return_inverse": "b"}, "?"),
    ("torch.unique_consecutive", "T", {"return_counts": "1"}, "(T=?,Ti?)"),
    ("torch.cat", "Tl", {"dim": "i"}, "T^="),
    ("torch.clamp", "T", {"min": "n"}, "T^="),
    ("torch.index_add", "T i T T", {}, "T=="),
    ("torch.nn.functional.batch_norm", "T T T", {}, "Tf="),
    ("torch.nn.functional.interpolate", "T", {"scale_factor": "f"}, "Tf="),
    ("torch.zeros", "i i", {}, "Tf?"),
    ("torch.full", "Z b", {}, "T^?"),
    ("torch.arange", "i", {}, "Tn?"),
    ("torch.zeros_like", "T", {}, "T=="),
    ("torch.allclose", "T T", {}, "b"),
    ("torch.is_tensor", "x", {}, "b"),
    ("torch.get_default_dtype", "", {}, "Y"),
    ("torch.numel", "T", {}, "i"),
    ("torch.fft.fft", "T", {}, "Tc="),
    ("torch.special.erf", "T", {}, "Tf="),
    ("torch.nn.functional.relu", "T", {}, "T=="),
    ("torch.nn.functional.one_hot", "T i", {}, "Ti?"),
    ("torch.nn.functional.max_pool2d", "T i", {}, "T=="),
    ("torch.nn.functional.max_pool2d", "T i", {"return_indices": "1"}, "(T==,Ti=)"),
    ("torch.nn.functional.mse_loss", "T T", {}, "Tf0"),
    ("torch.nn.functional.mse_loss", "T T", {"reduction": "s"}, "Tf?"),
    ("torch.nn.utils.clip_grad_norm_", "x f", {}, "T??"),
    ("torch.distributed.get_rank", "", {}, "i"),
    ("torch.cuda.memory_allocated", "", {}, "i"),
    ("torch.cuda.current_stream", "", {}, "@torch.cuda.Stream"),
    ("torch.Tensor.max", "T", {}, "T=0"),
    (".item", "", {}, "n"),
    (".tolist", "", {}, "L"),
    (".numpy", "", {}, "A"),
    (".size", "", {}, "Z"),
    (".size", "i", {}, "i"),
    (".dim", "", {}, "i"),
    (".bool", "", {}, "Tb="),
    (".float", "", {}, "Tf="),
    (".unbind", "", {}, "[T=?]"),
    (".min", "i", {}, "<values:T=?,indices:Ti?>"),
    (".to", "D", {}, "T=="),
    (".to", "", {"dtype": "Y"}, "T?="),
    (".view", "i i", {}, "T=?"),
    (".permute", "i i i", {}, "T=="),
    (".squeeze", "i", {}, "T=?"),
    (".new_zeros", "Z", {}, "T=?"),
    (".__and__", "T", {}, "T^^"),
    (".__invert__", "", {}, "T=="),
    (".__lt__", "x", {}, "Tb?"),
    (".__eq__", "x", {}, "Tb?"),
    (".__len__", "", {}, "i"),
    (".__iter__", "", {}, "[T=?]"),
    (".__bool__", "", {}, "b"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "positional", "keywords", "expected"), RETURNS)
def test_what_a_call_returns(
    table: TorchTable, name: str, positional: str, keywords: dict[str, str], expected: str
) -> None:
    found = find(table, name).resolve(positional.split(), keywords)
    assert render_return(found) == expected


# name, kinds, keywords, letters that hold, letters that do not
FLAGS = [
    (".item", "", [], "h", "v"),
    (".tolist", "", [], "h", ""),
    (".numpy", "", [], "h", ""),
    (".cpu", "", [], "h", ""),
    (".__bool__", "", [], "h", ""),
    (".__float__", "", [], "h", ""),
    (".__index__", "", [], "h", ""),
    (".__contains__", "x", [], "h", ""),
    (".__format__", "s", [], "h", ""),
    ("torch.equal", "T T", [], "hd", "p"),
    ("torch.allclose", "T T", [], "h", ""),
    ("torch.is_nonzero", "T", [], "h", ""),
    (".size", "", [], "", "h"),
    (".data_ptr", "", [], "", "h"),
    (".__len__", "", [], "", "h"),
    ("torch.nonzero", "T", [], "y", "h"),
    ("torch.unique", "T", [], "y", ""),
    ("torch.masked_select", "T T", [], "y", ""),
    ("torch.bincount", "T", [], "ys", ""),
    ("torch.where", "T", [], "y", ""),
    ("torch.where", "T T T", [], "p", "y"),
    ("torch.repeat_interleave", "T T", [], "y", ""),
    ("torch.repeat_interleave", "T T", ["output_size"], "", "y"),
    ("torch.repeat_interleave", "T i", [], "", "y"),
    ("torch.nn.functional.one_hot", "T", [], "h", ""),
    ("torch.nn.functional.one_hot", "T i", [], "", "hdy"),
    ("torch.linalg.inv", "T", [], "s", ""),
    ("torch.linalg.inv_ex", "T", [], "", "s"),
    ("torch.linalg.inv_ex", "T", ["check_errors"], "s", ""),
    (".narrow", "i T i", [], "h", ""),
    (".narrow", "i i i", [], "v", "dh"),
    ("torch.histc", "T i", [], "s", ""),
    ("torch.histc", "T i", ["min", "max"], "", "s"),
    ("torch.tensor", "x", [], "c", "s"),
    ("torch.tensor", "x", ["device"], "cs", ""),
    ("torch.cuda.synchronize", "", [], "s", ""),
    (".to", "D", [], "s", ""),
    (".to", "D", ["non_blocking"], "", "s"),
    (".to", "Y", [], "", "s"),
    ("torch.zeros", "Z", [], "c", "n"),
    ("torch.zeros_like", "T", [], "n", "c"),
    (".new_ones", "Z", [], "n", ""),
    ("torch.sum", "T", [], "r", "p"),
    ("torch.isnan", "T", [], "p", "r"),
    (".add_", "T", [], "m", ""),
    (".__iadd__", "T", [], "m", ""),
    (".view", "Z", [], "v", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "positional", "keywords", "there", "absent"), FLAGS)
def test_what_a_call_costs(
    table: TorchTable, name: str, positional: str, keywords: list[str], there: str, absent: str
) -> None:
    flags = find(table, name).flags_for(positional.split(), keywords)
    assert set(there) <= flags
    assert not set(absent) & flags


def test_a_boolean_index_makes_the_shape_dynamic(table: TorchTable) -> None:
    op = find(table, ".__getitem__")
    assert "y" not in op.flags_for(["x"])
    assert "y" in op.flags_for(["x"], mask=True)


ATTRIBUTES = {
    "shape": "Z",
    "device": "D",
    "dtype": "Y",
    "is_cuda": "b",
    "requires_grad": "b",
    "ndim": "i",
    "grad": "T==",
    "data": "T==",
    "T": "T==",
    "mT": "T==",
    "H": "T=?",
    "real": "T==",
    "imag": "Tf=",
    "grad_fn": "?",
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_a_tensor(table: TorchTable, name: str) -> None:
    found = table.attribute(name)
    assert found is not None
    assert render_return(found) == ATTRIBUTES[name]


# class, kind, method, its return for one tensor
CLASSES = [
    ("torch.nn.Linear", "module", "forward", "T??"),
    ("torch.nn.LSTM", "module", "forward", "(T??,(T??,T??))"),
    ("torch.nn.GRU", "module", "forward", "(T??,T??)"),
    ("torch.nn.modules.linear.Linear", "module", "forward", "T??"),
    ("torch.distributions.Normal", "distribution", "log_prob", "T??"),
    ("torch.distributions.Normal", "distribution", "sample", "T??"),
    ("torch.optim.AdamW", "optimizer", "zero_grad", "N"),
    ("torch.optim.lr_scheduler.StepLR", "scheduler", "step", "N"),
    ("torch.utils.data.DataLoader", "loader", "__len__", "i"),
    ("torch.cuda.Event", "event", "elapsed_time", "f"),
    ("torch.cuda.Stream", "stream", "query", "b"),
    ("torch.Generator", "generator", "initial_seed", "i"),
    ("torch.Size", "object", "numel", "i"),
    ("torch.amp.GradScaler", "scaler", "get_scale", "f"),
]


@pytest.mark.parametrize(("name", "kind", "method", "expected"), CLASSES)
def test_classes(table: TorchTable, name: str, kind: str, method: str, expected: str) -> None:
    found = table.klass(name)
    assert found is not None
    assert found.kind == kind
    op = found.method(method)
    assert op is not None
    returns = {render_return(overload.returns) for overload in op.overloads}
    assert expected in returns


def test_a_method_that_returns_self_returns_the_class_it_is_called_on(table: TorchTable) -> None:
    linear = table.klass("torch.nn.Linear")
    assert linear is not None
    op = linear.method("eval")
    assert op is not None
    assert render_return(op.resolve([])) == "@torch.nn.Linear"


def test_unknown_names_are_none(table: TorchTable) -> None:
    assert table.function("torch.no_such_function") is None
    assert table.method("no_such_method") is None
    assert table.attribute("no_such_attribute") is None
    assert table.klass("torch.nn.NoSuchModule") is None


def test_every_overload_of_the_table_can_be_parsed(table: TorchTable) -> None:
    for name in table.function_names():
        op = table.function(name)
        assert op is not None
        assert op.overloads
    for name in table.method_names():
        op = table.method(name)
        assert op is not None
        assert op.overloads
    for name in table.class_names():
        klass = table.klass(name)
        assert klass is not None
        for method in klass.own_methods:
            op = klass.method(method)
            assert op is not None
            assert op.overloads
        for attribute in klass.own_attributes:
            assert klass.attribute(attribute) is not None


def test_forms_of_returns_survive_a_round_trip() -> None:
    for text in ("T=0", "(Tb?,[T??])", "<values:T==,indices:Ti=>", "@torch.cuda.Stream", "?", "A"):
        assert render_return(parse_return(text)) == text


@pytest.mark.parametrize("text", ["", "T=", "(T??", "<a:T??", "[T??", "T??x", "q"])
def test_a_malformed_return_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"return|comma|list|tensor|substring"):
        parse_return(text)


def test_a_malformed_overload_is_an_error() -> None:
    with pytest.raises(ValueError, match="no arrow"):
        parse_overload("input:T")


def test_what_returns_have_in_common() -> None:
    assert common_return([]) == UNKNOWN
    assert common_return([TensorReturn("b", "0"), TensorReturn("b", "?")]) == TensorReturn("b", "?")
    assert common_return([parse_return("(T??,T??)"), parse_return("[T??]")]) == ListReturn(
        TensorReturn()
    )
    assert common_return([TensorReturn(), parse_return("i")]) == UNKNOWN


def test_loading_does_not_import_torch() -> None:
    code = (
        "import sys; from flake8_torchperf.knowledge import table; table.load();"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_older_releases_are_compared_with_the_table_that_is_committed(table: TorchTable) -> None:
    """Regenerate with the newest torch, then with each older one."""
    newest = releases.answers(json.loads(TABLE_PATH.read_bytes()))
    files = sorted(releases.FOLDER.glob("*.json"))
    assert [file.stem for file in files] == ["2.13.0"]
    for file in files:
        kept = json.loads(file.read_bytes())
        assert kept["newest"] == table.torch_version
        assert releases.is_older(file.stem, table.torch_version)
        assert file == releases.path_of(file.stem)
        same = [name for name, answer in kept["differs"].items() if newest.get(name) == answer]
        assert same == []


def test_what_an_older_release_answers_otherwise() -> None:
    sections: dict[str, Any] = {name: {} for name in (*releases.SECTIONS, "classes")}
    old = {**sections, "functions": {"f": "->T=="}, "methods": {"same": "->b", "gone": "->i"}}
    old["classes"] = {"A": {"kind": "module", "m": {"forward": "->T==", "to": "->@Self"}}}
    new = {**sections, "functions": {"f": "->T??"}, "methods": {"same": "->b", "added": "->n"}}
    new["classes"] = {
        "A": {"kind": "module", "b": ["B"], "m": {"forward": "->T??", "to": "->@Self"}}
    }
    assert releases.differences(old, new) == {
        "classes A b": None,
        "classes A m forward": "->T==",
        "functions f": "->T==",
        "methods added": None,
        "methods gone": "->i",
    }
    # A supplement that says of `same` that it waits changes the answers of both releases.
    told = {**old, "methods": {**old["methods"], "same": {"r": ["->b"], "f": "s"}}}
    recorded = releases.differences(old, new)
    carried = releases.carried(releases.differences(told, new), recorded)
    assert carried == {"methods same": {"r": ["->b"], "f": "s"}}
    assert releases.with_answers(new, carried)["methods"] == {
        "same": {"r": ["->b"], "f": "s"},
        "added": "->n",
    }
    with pytest.raises(LookupError, match="methods gone"):
        releases.with_answers(new, {"methods gone": "->i"})
    text = releases.render({"functions f": "->T=="}, "2.15.0")
    assert json.loads(text) == {"newest": "2.15.0", "differs": {"functions f": "->T=="}}
    assert releases.is_older("2.9.1", "2.13.0")
    assert not releases.is_older("2.13.0", "2.13.0")


@pytest.mark.slow
def test_the_committed_table_is_what_the_installed_torch_gives(table: TorchTable) -> None:
    """Of an older release, what is committed is where its answers differ."""
    try:
        installed = importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("torch is not installed")
    if installed != table.torch_version and not releases.path_of(installed).is_file():
        pytest.skip(f"the table describes torch {table.torch_version}, installed is {installed}")
    result = subprocess.run(
        [sys.executable, str(GENERATOR), "--check"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert result.returncode == 0, f"{table_module.TABLE_PATH.name}: {result.stdout}{result.stderr}"
