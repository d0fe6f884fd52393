"""Who fills in plain manifests on the test cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainyard_dev.e2e import plain
from trainyard_dev.e2e.recorder import CheckError


def cluster(*, serves: bool, has: bool) -> Any:
    """A cluster whose API server serves the kind, and where the release has policies of it."""

    def kubectl(verb: str, kind: str, *names: str, check: bool) -> SimpleNamespace:
        assert (verb, check) == ("get", False) and kind.startswith("mutatingadmissionpolicies.v1.")
        return SimpleNamespace(returncode=0 if serves and (has or not names) else 1)

    return SimpleNamespace(kubectl=kubectl)


@pytest.mark.parametrize("serves", [True, False])
def test_who_fills_in(serves: bool) -> None:
    assert plain.served(cluster(serves=serves, has=serves)) is serves


def test_a_server_that_could_fill_in_has_to() -> None:
    """Else a chart without its policies would pass as a cluster that serves none."""
    with pytest.raises(CheckError, match="serves MutatingAdmissionPolicy, and the release has none"):
        plain.served(cluster(serves=True, has=False))
