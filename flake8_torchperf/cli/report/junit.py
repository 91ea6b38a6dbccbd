"""``--format junit``: XML as Jenkins and others read it from test runs.

The elements that all readers know: https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from flake8_torchperf.cli.report.reported import Gathered, name_of, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.cli.report.reported import Reported

# Characters that XML 1.0 cannot express (https://www.w3.org/TR/xml/#charsets).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Report(Gathered):
    """A test case for each finding, which fails, and one that passes for each file without."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return the document."""
        known = rules()
        bad = {one.path for one in found}
        clean = [path for path in dict.fromkeys(self.files) if path not in bad]
        counts = {"tests": str(len(found) + len(clean)), "failures": str(len(found)), "errors": "0"}
        root = Xml.Element("testsuites", counts)
        suite = Xml.SubElement(root, "testsuite", {"name": "torchperf check", **counts})
        for path in clean:
            _case(suite, path, "no findings", 1)
        for one in found:
            name = f"{name_of(one.code, known)} at line {one.line}, column {one.column}"
            case = _case(suite, one.path, name, one.line)
            place = (
                f"{one.path}:{one.line}:{one.column}: {one.code} {one.message}{one.details(known)}"
            )
            told = {"message": _written(one.message), "type": one.code}
            Xml.SubElement(case, "failure", told).text = _written(place)
        Xml.indent(root)
        head = '<?xml version="1.0" encoding="utf-8"?>'
        return f"{head}\n{Xml.tostring(root, encoding='unicode')}"


def _case(suite: Xml.Element, path: str, name: str, line: int) -> Xml.Element:
    told = {"classname": _written(path), "name": name, "file": _written(path), "line": str(line)}
    return Xml.SubElement(suite, "testcase", told)


def _written(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
