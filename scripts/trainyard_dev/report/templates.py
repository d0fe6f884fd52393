"""The templates of every form of the report: pages, timeline, drawings of panels, JUnit XML.

Every value is cleaned and escaped where it is written.
"""

import base64
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from trainyard_dev.report import groups
from trainyard_dev.report.model import Picture
from trainyard_dev.report.plain import clean, duration, figure, words

SYMBOLS = {"passed": "\u2713", "failed": "\u2717", "skipped": "\u2013"}
SOURCES = {"build": "built here", "pull": "pulled from registries"}
_GPU_ID = re.compile(r"((?:MIG-)?GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


def render(name: str, **values: Any) -> Markup:
    """The rendered template; one form inside another is not escaped again."""
    return Markup(_environment().get_template(name).render(values))


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__, "assets"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"symbols": SYMBOLS, "sources": SOURCES}
    made.tests["picture"] = lambda value: isinstance(value, Picture)
    made.filters |= {
        "duration": duration,
        "address": _address,
        "attribute": _attribute,
        "clean": clean,
        "figure": figure,
        "group_title": groups.title,
        "grouped": groups.grouped,
        "moment": _moment,
        "passed_of": groups.passed_of,
        "refusal": groups.refusal,
        "split_gpu_ids": _GPU_ID.split,  # every second part is an id
        "words": words,
    }
    return made


def _shown(value: Any) -> Any:
    """A template's output value before it is escaped, without characters that no page may have."""
    return value if isinstance(value, Markup) else clean(value)


def _address(picture: Picture) -> str:
    """The picture as a data URL; its document can neither run scripts nor load anything."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.svg.encode()).decode()}"


def _attribute(text: str) -> Markup:
    """A text of several lines as an XML attribute, where a bare newline reads as a space."""
    return Markup(escape(clean(text)).replace("\n", Markup("&#10;")).replace("\t", Markup("&#09;")))


def _moment(seconds: float, form: str = "%-d %B %Y, %H:%M UTC") -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(form)
