"""The HTML report of `run`: one file, which opens offline.

Needs jinja2, which escapes everything that is shown. The template extends `templates/page.html`.
"""

from __future__ import annotations

from typing import Any


def render(template: str, **shown: Any) -> str:
    """Return the page that ``template`` makes of ``shown``. Raises where a name is missing."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flake8_torchperf.runtime"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(**shown)
