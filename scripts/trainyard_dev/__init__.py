"""The laboratory: builds, makes clusters, tests end to end and measures. It runs from a checkout and is in no wheel.

Importing it makes the product call the pinned helm and kubectl instead of those on PATH.
"""

from pathlib import Path

from trainyard import programs, shell


def pinned(name: str) -> Path | None:
    """Path of a program of versions.yaml, built first if the cache lacks it; None for a name that no set builds."""
    from trainyard_dev import tools
    from trainyard_dev.versions import load

    known = {built for tool in load().tools.values() for _, built in tool.packages}
    return tools.binary(name) if name in known else None


programs.prefer(pinned)
shell.LACKING = "run `trainyard doctor`"
