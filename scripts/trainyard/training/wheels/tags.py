"""Compatibility of wheels with the images' Python, from the tags in their file names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainyard.kinds.requirements import PYTHON as PYTHON
from trainyard_agent.runs.requirements import canonical

GLIBC = 41  # version in the images' base: Debian 13
OLD_NAMES = {17: "manylinux2014_x86_64", 12: "manylinux2010_x86_64", 5: "manylinux1_x86_64"}
NAME = re.compile(
    r"([A-Za-z0-9._]+)-([A-Za-z0-9._!+]+)(?:-\d[A-Za-z0-9_.]*)?-([a-z0-9_.]+)-([a-z0-9_.]+)-([A-Za-z0-9_.]+)\.whl"
)


@dataclass(frozen=True)
class Wheel:
    """A wheel by its file name. `name` is normalized; `python`, `abi`, `platform` may each have several tags."""

    file: str
    name: str
    version: str
    python: str
    abi: str
    platform: str


def of(file: str) -> Wheel | None:
    """The wheel with that file name; None if the name is invalid."""
    match = NAME.fullmatch(file)
    return Wheel(file, canonical(match[1]), *match.groups()[1:]) if match else None


def platforms() -> Iterator[str]:
    """Platform tags that the images' base supports, newest first."""
    for minor in range(GLIBC, 4, -1):
        yield f"manylinux_2_{minor}_x86_64"
        if minor in OLD_NAMES:
            yield OLD_NAMES[minor]
    yield "linux_x86_64"


def options(python: str) -> list[str]:
    """pip's options to use the images' Python instead of its own."""
    found = [f"--python-version={python}", "--implementation=cp", f"--abi=cp{python.replace('.', '')}"]
    return [*found, *(f"--platform={one}" for one in platforms())]


def misfit(wheel: Wheel, python: str) -> str:
    """Why the images' Python can't install a wheel; "" if it can."""
    major, minor = (int(part) for part in python.split("."))
    if not any(_runs(one, wheel.abi, major, minor) for one in wheel.python.split(".")):
        return f"it is for {wheel.python}-{wheel.abi}, but the images have Python {python}"
    if not {"any", *platforms()} & set(wheel.platform.split(".")):
        return f"it is for {wheel.platform}, but the images are x86-64 Linux with glibc 2.{GLIBC}"
    return ""


def _runs(tag: str, abi: str, major: int, minor: int) -> bool:
    match = re.fullmatch(r"(py|cp)(\d)(\d*)", tag)
    if not match or int(match[2]) != major:
        return False
    least, abis = int(match[3] or 0), abi.split(".")
    if "none" in abis:
        return least <= minor if match[1] == "py" else least == minor or not match[3]
    if "abi3" in abis:
        return least <= minor
    return f"cp{major}{minor}" in abis and least == minor
