"""Packages of components, where the platform has both the image's packages and every available wheel on record."""

import re
from collections.abc import Callable, Iterable, Mapping

from packaging.requirements import InvalidRequirement, Requirement

from trainyard.kinds import images
from trainyard.kinds.requirements import MARKERS, PYTHON
from trainyard.pipelines.ir import installer
from trainyard.pipelines.ir.model import Pipeline
from trainyard.policy.lint.report import Report
from trainyard.training.wheels import tags
from trainyard_agent.runs.requirements import canonical

Where = Callable[[int, tuple[str, ...], bool], int]


def check(pipeline: Pipeline, report: Report, where: Where, stand_ins: Mapping[str, str]) -> None:
    """Report packages that no run could install. `stand_ins`: replacements of images, by the images' names."""
    site = report.site.contract.packages
    if site.get("index") or site.get("wheels") is None:
        return  # the contents of an index, or of a store that is not queried, are unknown here
    for executor in pipeline.executors.values():
        asked, _ = installer.split([*executor.command, *executor.args])
        image = images.of_reference(stand_ins.get(executor.image, executor.image), steps=True)
        if asked is None or image is None:
            continue
        pins = {name: pin for module, pin in image.modules.items() for name in images.packages(module)}
        there = {name: pin.partition("==")[2] for name, pin in pins.items()}
        for text in asked.packages:
            if why := missing(text, there, site["wheels"], image.python):
                line = where(executor.line, (executor.label, "packages_to_install"), False)
                put = "trainyard wheels put FILE" + (f" --python {image.python}" if image.python != PYTHON else "")
                hint = f"the platform engineer brings it: write {text!r} into a file, `{put}`"
                elsewhere = "".join(f"; {_shown(one)}, which it names, is not asked" for one in asked.indexes)
                report.add("TY306", line, why + elsewhere, hint, task=executor.label.removeprefix("exec-"))


def _shown(index: str) -> str:
    """The index's URL without a password."""
    return re.sub("//[^/]*@", "//", index)


def missing(text: str, there: Mapping[str, str], files: Iterable[str], python: str) -> str:
    """The reason why neither the image (name -> version) nor wheels meet a requirement; "" if they do.

    Args:
        there: versions by name; "" is an unknown version.
        python: the minor version of the image's Python.
    """
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return ""  # the translation refuses it
    markers = {**MARKERS, "python_version": python, "python_full_version": f"{python}.2"}
    if wanted.marker and not wanted.marker.evaluate(markers):
        return ""
    name = canonical(wanted.name)
    if there.get(name) == "":
        return ""
    known = [wheel for wheel in map(tags.of, files) if wheel and wheel.name == name]
    fitting = [wheel.version for wheel in known if not tags.misfit(wheel, python)]
    versions = [*fitting, *filter(None, [there.get(name)])]
    if any(wanted.specifier.contains(version, prereleases=True) for version in versions):
        return ""
    has = f"there is {name} {', '.join(dict.fromkeys(versions))}" if versions else "there is no wheel of it"
    made = f" for Python {python}" if known and not versions else ""
    return f"no run gets the package {text}: {has}{made}"
