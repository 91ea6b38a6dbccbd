"""The methods of a project that each take one training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import takes_training_step
from flake8_torchperf.project.answers import STEPS
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.project.whole_modules import asked_of

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.project.resolver import Project

# A word of each module that goes backward, as a search for an attribute spells it.
_OF_STEPS = ".backward"


def step_methods(project: Project) -> set[str]:
    """Return the names of the methods in a project that take a training step.

    Empty if too many modules go backward.
    """
    found: set[str] = set()
    for path in project.all_modules_that_say(_OF_STEPS) or ():
        if path == project.linted_path:
            found.update(step_methods_in(project.linted))
        else:
            found.update(asked_of(path, STEPS, step_methods_in, project))
    return found


@once_per_module
def step_methods_in(module: ModuleMap) -> tuple[str, ...]:
    """Return the names of the methods in a module that take a training step, in order."""
    found = {info.name for info in module.defined if info.owner and takes_training_step(info)}
    return tuple(sorted(found))
