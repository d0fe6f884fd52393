"""Notebooks."""

from __future__ import annotations

from trainyard_dev.e2e.context import Context

IDS = ("notebooks.work",)
IMAGES = ("dex", "notebook-hub", "notebook")


def check(context: Context) -> None:
    """Nothing yet."""
    with context.recorder.check("notebooks.work", "notebooks"):
        pass
