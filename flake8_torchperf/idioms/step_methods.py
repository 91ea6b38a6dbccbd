"""The methods of a module that each take one training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import takes_training_step
from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap

# A word of each module that goes backward, as a search for an attribute spells it.
OF_STEPS = ".backward"


@once_per_module
def step_methods_in(module: ModuleMap) -> tuple[str, ...]:
    """Return the names of the methods in a module that take a training step, in order."""
    found = {info.name for info in module.defined if info.owner and takes_training_step(info)}
    return tuple(sorted(found))
