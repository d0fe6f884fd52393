"""The report's template and styles, read as package data."""

from functools import cache
from importlib import resources


@cache
def text(name: str) -> str:
    """The text of one asset file."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
