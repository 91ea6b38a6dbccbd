"""Classes of programs that train: their methods are reported only if live code may make objects."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint
from flake8_torchperf.project.texts import settings_files, text_search

NET = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Tensor):
        return x.std().item()
"""
TRAIN = """\
def train(model, optimizer, loader):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
"""


def lines_told(folder: Path, files: dict[str, str]) -> list[int]:
    """Return the lines of ``models/net.py`` that are reported by default."""
    (folder / "requirements.txt").touch()
    for name, text in {"models/net.py": NET, "train.py": TRAIN, **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    text_search.forget()
    settings_files._LAST.clear()
    text = (folder / "models" / "net.py").read_text()
    return [one.line for one in lint(text, str(folder / "models" / "net.py"), HOT)]


DISTRIBUTION = {
    "pyproject.toml": "[project]\nname = 'nets'\n",
    "main.py": "if __name__ == '__main__':\n    print(1)\n",
}
NAMED: dict[str, dict[str, str]] = {
    "a call": {"main.py": "from models.net import Net\n\nnet = Net()\n"},
    "an attribute": {"main.py": "import models.net as nets\n\nnet = nets.Net()\n"},
    "an alias": {"main.py": "from models.net import Net as N\n\nnet = N()\n"},
    "a table": {"main.py": "from models.net import Net\n\nMODELS = {'small': Net}\n"},
    "a string": {"main.py": "import models.net\n\nnet = build('models.net.Net')\n"},
    "a string that is the name": {"main.py": "net = build('Net')\n"},
    "an import that may fail": {
        "main.py": (
            "try:\n    from models.net import Net\nexcept ImportError:\n    Net = None\n\nnet = Net()\n"
        )
    },
    "an evaluated default": {"main.py": "def build(model='Net(n=3)'):\n    return eval(model)\n"},
    "a file of settings": {"config.yaml": "model:\n  target: models.net.Net\n"},
    "the name's own module": {"models/net.py": NET + "\n\ndef build():\n    return Net()\n"},
    "a decorator": {"models/net.py": NET.replace("class Net", "@MODELS.register\nclass Net")},
    "a class that is named": {
        "main.py": "from models.net import Net\n\n\nclass Big(Net):\n    pass\n\n\nnet = Big()\n"
    },
    "a part of a class that is named": {
        "main.py": (
            "from models.net import Net\n\n\nclass Big:\n    def __init__(self):\n"
            "        self.net = Net()\n\n\nnet = Big()\n"
        )
    },
    "a name made at run time": {
        "main.py": "from models import net\n\n\ndef build(args):\n    return getattr(net, args.name)()\n"
    },
    "a name in a module made at run time": {
        "main.py": (
            "import importlib\n\n\ndef build(kind, name):\n"
            "    return getattr(importlib.import_module(f'models.{kind}'), name)()\n"
        )
    },
    "a name in a module whose path is kept": {
        "main.py": (
            "import importlib\n\n\ndef build(kind, name):\n"
            "    path = 'models.' + kind\n    found = importlib.import_module(path)\n"
            "    return getattr(found, name)()\n"
        )
    },
    "a name in a package that imports it": {
        "models/__init__.py": "from .net import *\n",
        "main.py": "import models\n\n\ndef build(args):\n    return getattr(models, args.name)()\n",
    },
    "a name in a package that loads modules": {
        "models/__init__.py": "for one in FILES:\n    importlib.import_module(one)\n",
        "main.py": "import models\n\n\ndef build(args):\n    return getattr(models, args.name)()\n",
    },
    "a written name in a module made at run time": {
        "main.py": (
            "import importlib\n\n\ndef build(kind):\n"
            "    return getattr(importlib.import_module(f'models.{kind}'), 'Net')()\n"
        )
    },
    "an attribute of a module made at run time": {
        "main.py": (
            "import importlib\n\n\ndef build(kind):\n"
            "    found = importlib.import_module(f'models.{kind}')\n    return found.Net()\n"
        )
    },
    "a name in a loaded module": {
        "main.py": (
            "import sys\n\n\ndef build(name):\n"
            "    return getattr(sys.modules['models.net'], name)()\n"
        )
    },
    "a name in a module of a folder": {
        "main.py": (
            "import models.net\n\n\ndef build(name):\n    return models.net.__dict__[name]()\n"
        )
    },
    "a name that is evaluated": {
        "main.py": "from models.net import Net\n\n\ndef build(args):\n    return eval(args.name)\n"
    },
    "names of all modules": {
        "main.py": "from models.net import *\n\n\ndef build(name):\n    return globals()[name]()\n"
    },
    "a base that keeps a list": {
        "models/net.py": NET.replace("nn.Module", "Base"),
        "base.py": (
            "class Base(nn.Module):\n    def __init_subclass__(cls):\n        LIST.append(cls)\n"
        ),
    },
    "a base that asks for its subclasses": {
        "models/net.py": NET.replace("nn.Module", "Base"),
        "base.py": "class Base(nn.Module):\n    pass\n\n\nALL = Base.__subclasses__()\n",
    },
    "a public class of a distribution that a document names": {
        **DISTRIBUTION,
        "README.md": "Make a `Net` and call it.\n",
    },
    "a public class of a distribution that its tests name": {
        **DISTRIBUTION,
        "tests/test_net.py": "from models.net import Net\n",
    },
    "a class of a distribution without a program": {"pyproject.toml": "[project]\nname = 'nets'\n"},
    "no program that trains": {"train.py": "print(1)\n"},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_class_that_may_be_made_is_told(name: str, tmp_path: Path) -> None:
    assert lines_told(tmp_path, NAMED[name])


UNNAMED: dict[str, dict[str, str]] = {
    "nothing": {},
    "a public class of a distribution that nothing shows how to use": DISTRIBUTION,
    "another written name in a module made at run time": {
        "main.py": (
            "import importlib\n\n\ndef build(kind):\n"
            "    found = importlib.import_module(f'models.{kind}')\n"
            "    return getattr(found, 'Other')(), found.Third()\n"
        )
    },
    "a class that only names itself": {
        **DISTRIBUTION,
        "models/net.py": NET.replace(
            "    def forward",
            "    def __init__(self):\n        super(Net, self).__init__()\n\n    def forward",
        ),
    },
    "an import": {"main.py": "from models.net import Net\n"},
    "a list of exports": {
        "main.py": (
            "from models.net import Net\n\n__all__ = ['Net']\n__all__ += ['Net']\n"
            "__all__.extend(['Net'])\n"
        )
    },
    "a comment": {"main.py": "x = 1  # Net()\n"},
    "a docstring": {"main.py": '"""Use Net."""\n\n\ndef build():\n    """Return a Net."""\n'},
    "a test of the class": {
        "main.py": "from models.net import Net\n\n\ndef f(x):\n    return isinstance(x, Net)\n"
    },
    "a test of several classes": {
        "main.py": "from models.net import Net\n\nassert not isinstance(1, (int, Net))\n"
    },
    "a type hint": {
        "main.py": "from models.net import Net\n\n\ndef f(x: Net | None) -> Net:\n    return x\n"
    },
    "a compared string": {"main.py": "import sys\n\nprint(sys.argv[1] == 'Net')\n"},
    "another module's class of the name": {
        "main.py": "from torch.nets import Net\n\nnet = Net()\n"
    },
    "a class that nothing names": {
        "main.py": (
            "from models.net import Net\n\n\nclass Big:\n    def __init__(self):\n"
            "        self.net = Net()\n"
        )
    },
    "a name looked up elsewhere": {
        "main.py": "import other\n\n\ndef build(args):\n    return getattr(other, args.name)()\n"
    },
    "a name looked up in a package that does not import it": {
        "models/__init__.py": "from .other import *\n",
        "main.py": "import models\n\n\ndef build(args):\n    return getattr(models, args.name)()\n",
    },
    "a name looked up in a module of torch": {
        "main.py": (
            "import torch\n\n\ndef build(name):\n    return getattr(torch.models.net, name)()\n"
        )
    },
    "a module in a variable of its name": {
        "main.py": (
            "import importlib\n\n\ndef build(net, name):\n"
            "    return getattr(importlib.import_module(net), name)()\n"
        )
    },
    "a name in a module whose name begins alike": {
        "main.py": (
            "import importlib\n\n\ndef build(kind, name):\n"
            "    return getattr(importlib.import_module(f'other.models{kind}'), name)()\n"
        )
    },
    "a base of torch with a plain metaclass": {
        "models/net.py": NET.replace("nn.Module", "nn.Module, metaclass=abc.ABCMeta")
    },
    "a longer name": {"main.py": "net = NetV2()\n", "config.yaml": "model: NetV2\n"},
}


@pytest.mark.parametrize("name", UNNAMED)
def test_a_class_that_nothing_makes_is_silent(name: str, tmp_path: Path) -> None:
    assert not lines_told(tmp_path, UNNAMED[name])


def test_a_package_without_a_marked_project_may_be_used_elsewhere(tmp_path: Path) -> None:
    assert not lines_told(tmp_path, {})
    (tmp_path / "requirements.txt").unlink()
    assert lint(NET, str(tmp_path / "models" / "net.py"), HOT)


def test_a_text_that_is_not_saved_names_its_class(tmp_path: Path) -> None:
    assert not lines_told(tmp_path, {})
    path = str(tmp_path / "models" / "net.py")
    assert lint(f"{NET}\n\nnet = Net()\n", path, HOT)


def test_what_a_dead_method_calls_is_silent(tmp_path: Path) -> None:
    body = NET.replace("x.std().item()", "spread(x)")
    helper = "\n\ndef spread(x: Tensor):\n    return x.std().item()\n"
    assert not lines_told(tmp_path, {"models/net.py": body + helper})
    named = {"models/net.py": body + helper, "main.py": "net = Net()\n"}
    assert lines_told(tmp_path, named) == [11]


BRANCH = """\
import torch
from torch import Tensor, nn


class Old(nn.Module):
    pass


class New(nn.Module):
    pass


class Net(nn.Module):
    def forward(self, x: Tensor, part: nn.Module):
        if isinstance(part, {tested}):
            return x.std().item()
        return x.sum().item()


net = Net(New())
"""


@pytest.mark.parametrize(
    ("tested", "lines"),
    [
        ("Old", [17]),
        ("(Old,)", [17]),
        ("New", [16, 17]),
        ("(Old, New)", [16, 17]),
        ("nn.Linear", [16, 17]),
    ],
)
def test_a_branch_for_a_class_that_nothing_makes(
    tested: str, lines: list[int], tmp_path: Path
) -> None:
    assert lines_told(tmp_path, {"models/net.py": BRANCH.format(tested=tested)}) == lines
