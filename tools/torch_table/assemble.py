"""Puts the parts together: the installed torch and the supplement in, the JSON's content out."""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    Return,
    ScalarReturn,
    TensorReturn,
    render_return,
)
from torch_table import schemas, stubs
from torch_table.classes import ClassReader
from torch_table.measured import fold_measured, origin, read_measured
from torch_table.model import Entry, Signature
from torch_table.namespaces import Catalogue, catalogue
from torch_table.operations import Builder, attribute_return
from torch_table.probe import Prober, describe
from torch_table.supplement import fold, fold_documented

# Namespaces whose functions compute on tensors and are therefore probed, with the prefix of their
# aten names.
NUMERIC = {
    "torch": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.fft": "fft_",
    "torch.special": "special_",
}
# How many rounds what no sample lets converge is to do; by default a thousand, all alike.
_ROUNDS = {"lobpcg": {"niter": 4}}
_PLUMBING = {
    "__class__", "__deepcopy__", "__delattr__", "__dict__", "__dir__", "__doc__",
    "__getattribute__", "__getstate__", "__init__", "__init_subclass__", "__module__",
    "__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__setstate__", "__sizeof__",
    "__subclasshook__", "__weakref__", "__torch_dispatch__", "__torch_function__",
    "__cuda_array_interface__", "__array_priority__", "__dlpack__", "__dlpack_device__",
    "__hash__", "__annotations__", "__firstlineno__", "__static_attributes__", "__str__",
}  # fmt: skip

# Python's protocols, which share a name with an unrelated operator.
_NO_OPERATOR = {
    "__index__", "__int__", "__float__", "__bool__", "__complex__", "__len__", "__iter__",
    "__long__", "__nonzero__", "__rand__",
}  # fmt: skip


class Assembler:
    """Holds the data that all sections need; one per run."""

    def __init__(self) -> None:
        package = Path(torch.__file__).parent
        self.core = stubs.read_stub(package / "_C" / "__init__.pyi")
        self.variable_functions = stubs.functions_of(
            stubs.read_stub(package / "_C" / "_VariableFunctions.pyi").body
        )
        self.catalogue: Catalogue = catalogue(private=_private(self.variable_functions))
        tuples = (
            stubs.named_tuples(package / "_C" / "return_types.pyi")
            if (package / "_C" / "return_types.pyi").exists()
            else stubs.named_tuples(package / "return_types.pyi")
        )
        self.names = self.catalogue.class_names()
        self.reader = stubs.Reader(self.catalogue.annotation_names(), tuples)
        self.builder = Builder(Prober(self.names))
        self.nn = stubs.functions_of(stubs.read_stub(package / "_C" / "_nn.pyi").body)
        self.functional = stubs.functions_of(
            stubs.read_stub(package / "nn" / "functional.pyi").body
        )

    def functions(self) -> dict[str, Entry]:
        """Return all public functions."""
        found: dict[str, Entry] = {}
        for qualified, function in sorted(self.catalogue.functions.items()):
            entry = self._function(qualified, function)
            if entry is not None:
                fold_documented(qualified, function, entry)
                found[qualified] = entry
        return found

    def _function(self, qualified: str, function: Any) -> Entry | None:
        module, _, name = qualified.rpartition(".")
        if module in NUMERIC:
            signatures = self._numeric_signatures(module, name, function)
            operator = NUMERIC[module] + name
            called = partial(function, **_ROUNDS[name]) if name in _ROUNDS else function
            return self.builder.build(name, called, signatures, [operator]) if signatures else None
        if not inspect.isfunction(stubs.undispatched(function)):
            value = self.reader.documented_return(function)
            return None if value == UNKNOWN else Entry([Signature((), value)])
        signature = self.reader.from_object(stubs.undispatched(inspect.unwrap(function)))
        if signature is None or signature.returns == UNKNOWN:
            return None
        return Entry([signature])

    def _numeric_signatures(self, module: str, name: str, function: Any) -> list[Signature]:
        plain = stubs.undispatched(function)
        if inspect.isfunction(plain):
            signature = self.reader.from_object(plain)
            found = [] if signature is None else [signature]
        else:
            by_module = {
                "torch": [self.variable_functions],
                "torch.nn.functional": [self.nn, self.functional, self.variable_functions],
            }
            stub = next((s[name] for s in by_module.get(module, []) if name in s), [])
            found = [self.reader.from_stub(node) for node in stub]
            found = [s for s in found if not _is_deprecated(s)]
            found = found or schemas.signatures(NUMERIC[module] + name)
        documented = self.reader.documented_return(function)
        return [s if s.returns != UNKNOWN else Signature(s.parameters, documented) for s in found]

    def methods(self) -> dict[str, Entry]:
        """Return all methods of Tensor, operators included."""
        body = stubs.class_body(self.core, "TensorBase")
        stubbed = stubs.functions_of(body)
        found: dict[str, Entry] = {}
        for name in sorted(set(dir(torch.Tensor)) - _PLUMBING):
            if name.startswith("_") and not name.startswith("__") and name not in _private(stubbed):
                continue
            value = inspect.getattr_static(torch.Tensor, name)
            if isinstance(value, (property, classmethod, staticmethod)) or not callable(
                getattr(torch.Tensor, name)
            ):
                continue
            function = getattr(torch.Tensor, name)
            signatures = self._method_signatures(function, stubbed.get(name, []))
            if signatures:
                operators = (
                    [name]
                    if name in _NO_OPERATOR or not name.startswith("__")
                    else [name, name.strip("_")]
                )
                found[name] = self.builder.build(name, function, signatures, operators, bound=True)
        return found

    def _method_signatures(self, function: Any, stub: list[ast.FunctionDef]) -> list[Signature]:
        tensor = TensorReturn()
        if inspect.isfunction(function) and not (stub and hasattr(function, "__wrapped__")):
            signature = self.reader.from_object(function, tensor)
            found = [] if signature is None else [signature]
            if stub and found and found[0].returns == UNKNOWN:
                annotated = self.reader.from_stub(stub[0], tensor).returns
                found = [Signature(found[0].parameters, annotated)]
        else:
            found = [self.reader.from_stub(node, tensor) for node in stub]
        found = [s for s in found if len(found) == 1 or not _accepts_anything(s)]
        return [_with_self(s) for s in found if s.parameters]

    def attributes(self) -> dict[str, str]:
        """Return all attributes and properties of Tensor."""
        annotated: dict[str, Return] = {}
        for node in stubs.class_body(self.core, "TensorBase"):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                annotated[node.target.id] = self.reader.returned(ast.unparse(node.annotation))
        for name in dir(torch.Tensor):
            if type(inspect.getattr_static(torch.Tensor, name)).__name__ in {
                "getset_descriptor",
                "property",
            }:
                annotated.setdefault(name, UNKNOWN)
        samples = list(_samples())
        found: dict[str, str] = {}
        for name, hint in annotated.items():
            if name.startswith("_"):
                continue
            value = attribute_return(name, hint, lambda v: describe(v, self.names), samples)
            found[name] = render_return(value)
        return found

    def classes(self) -> dict[str, Any]:
        """Return all public classes."""
        bodies = {node.name: node for node in self.core.body if isinstance(node, ast.ClassDef)}
        reader = ClassReader(self.reader, self.catalogue.classes, bodies)
        return {name: reader.data(name) for name in self.catalogue.classes}


def _private(stubbed: Iterable[str]) -> set[str]:
    """Return the functions with a leading underscore that a stub declares and Python code calls.

    Most private functions are one step of a public function, or one backend's kernel, whose
    arguments no sample fits: `_PRIVATE` selects the others.
    """
    return {name for name in stubbed if name.startswith(_PRIVATE)}


# `_foreach_add_` and the like, functions that distributions and optimizers call, sparse tensors
_PRIVATE = (
    "_foreach_", "_is_all_true", "_is_any_true", "_is_zerotensor", "_is_view", "_indices",
    "_values", "_nnz", "_to_dense", "_to_sparse", "_coalesced_", "_conj", "_neg_view",
    "_shape_as_tensor", "_dim", "_unique", "_weight_norm", "_amp_", "_sample_dirichlet",
    "_standard_gamma", "_stack", "_log_softmax", "_softmax", "_masked_s", "_assert_async",
)  # fmt: skip


def _is_deprecated(signature: Signature) -> bool:
    """True for forms that stubs keep for old code: a required `out`, or named tensors."""
    return any(p.name in {"out", "names"} and not p.optional for p in signature.parameters)


def _accepts_anything(signature: Signature) -> bool:
    """True for a signature that accepts any object, which the stub has for type checkers only.

    `__eq__(self, other: object) -> bool` is one.
    """
    names = {p.name: p.types for p in signature.parameters}
    return names.get("other") == ("x",) and signature.returns == ScalarReturn("b")


def _with_self(signature: Signature) -> Signature:
    from dataclasses import replace

    first = replace(signature.parameters[0], types=("T",), optional=False, form="positional")
    return replace(signature, parameters=(first, *signature.parameters[1:]))


def _samples() -> Iterable[torch.Tensor]:
    for shape in ((2, 3), (3, 3), (2, 3, 3)):
        for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
            tensor = torch.ones(shape, dtype=dtype)
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.requires_grad_()
                tensor.grad = torch.ones(shape, dtype=dtype)
            yield tensor


def assemble() -> dict[str, Any]:
    """Return the table's content."""
    importlib.import_module("torch.nn.functional")
    logging.disable(logging.CRITICAL)  # fake tensors log every call that does not suit
    torch.set_num_threads(1)  # samples of a few elements
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = Assembler()
        functions, methods = parts.functions(), parts.methods()
        attributes, classes = parts.attributes(), parts.classes()
    aliases = dict(parts.catalogue.aliases)
    fold(functions, methods, classes, aliases)
    measured = read_measured()
    fold_measured(functions, methods, classes, measured)
    kept = {alias: name for alias, name in aliases.items() if name in functions or name in classes}
    return {
        "torch": torch.__version__.partition("+")[0],
        "measured": origin(measured),
        "functions": {name: entry.data() for name, entry in functions.items()},
        "methods": {name: entry.data() for name, entry in methods.items()},
        "attributes": attributes,
        "classes": classes,
        "aliases": kept,
    }
