"""The rules and dashboards of the chart `monitoring`, and promtool of the version that it installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev import tools


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The pinned promtool; skips where it can't be built."""
    try:
        return tools.binary("promtool")
    except TrainyardError as error:
        pytest.skip(f"no promtool: {error}")
