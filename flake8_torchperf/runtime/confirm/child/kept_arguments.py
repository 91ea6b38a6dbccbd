"""In the child: loads the arguments of a call that `torchperf run --keep-inputs` kept.

They are loaded anew for each call, so that no call sees what another one changed.
"""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.load import import_file


def arguments_of(call: Mapping[str, Any], names: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Return the arguments of a call by name, with their tensors on ``device``.

    ``call`` holds a "file", and "modules" as in `KeptCall`. ``names`` are those of the module under
    examination: its objects get the classes in it, whatever it was called in the run. Raises
    whatever loading raises.
    """
    own, modules = os.path.realpath(str(names["__file__"])), dict(call["modules"])

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            file = modules.get(module)
            if file is None:
                return super().find_class(module, name)
            if file == own:
                found: Any = SimpleNamespace(**names)
            else:
                found = import_file(file, Path(file).stem if module == "__main__" else module)
            return functools.reduce(getattr, name.split("."), found)

    pickling: Any = ModuleType("kept_inputs")
    pickling.Unpickler, pickling.load = Unpickler, pickle.load
    place = "cpu" if device == "cpu" else None
    loaded = torch.load(
        call["file"], map_location=place, pickle_module=pickling, weights_only=False
    )
    return dict(loaded)
