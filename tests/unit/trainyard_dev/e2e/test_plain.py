"""How plain manifests are filled in on the test cluster."""

from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.paths import ROOT
from trainyard.policy import fill
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


def test_where_no_server_fills_in_the_command_adopt_does() -> None:
    raw = contract.load(ROOT / "tests" / "policies" / "teams.yaml").raw
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}}
    container = {"name": "main", "image": "site.invalid/trainyard/trainer-torch:0.4.0"}
    job["spec"] = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    sent: list[str] = []

    def kubectl(*words: str, check: bool, input: str | None) -> SimpleNamespace:
        sent.append(input or "")
        return SimpleNamespace(returncode=0, stdout="job.batch/plain\n", stderr="")

    context: Any = SimpleNamespace(kubectl=kubectl, contract=raw)
    assert plain.send(context, [job], fills=False) == ["job.batch/plain"]
    (made,) = yaml.safe_load(sent[0])["items"]
    assert made["spec"]["activeDeadlineSeconds"] and fill.TOLD in made["metadata"]["annotations"]
    with pytest.raises(CheckError, match=r"trainyard adopt exited with 2: .*without apiVersion or kind"):
        plain.send(context, [{"spec": {}}], fills=False)
    plain.send(context, [job], fills=True)
    assert "activeDeadlineSeconds" not in sent[1]
