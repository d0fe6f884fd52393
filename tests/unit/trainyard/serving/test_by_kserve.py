"""Models that KServe serves are listed, compared and distinguished; a site may have no KServe."""

from typing import Any

import pytest
from click.testing import CliRunner
from played_objects import Objects

from trainyard.cli import trainyard
from trainyard.commands import models
from trainyard.errors import TrainyardError
from trainyard.kube import KubeError
from trainyard.kube.access import Access
from trainyard.serving import overview

LABELS = {"trainyard.io/model": "digits", "trainyard.io/track": "stable", "trainyard.io/access": "team"}
NOTES = {"trainyard.io/model-version": "7", "trainyard.io/model-source": "s3://runs/vision/models/digits/7"}
POD = {"containers": [{"name": "server", "image": "server:1"}]}
SERVED: dict[str, Any] = {
    "metadata": {"name": "model-digits", "labels": LABELS},
    "spec": {"predictor": {"minReplicas": 2, "labels": LABELS, "annotations": NOTES, **POD}},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "address": {"url": "http://model-digits-predictor.vision"},
    },
}
MADE = {
    "metadata": {
        "name": "model-digits-predictor",
        "labels": LABELS,
        "ownerReferences": [{"kind": "InferenceService", "name": "model-digits"}],
    },
    "spec": {"template": {"metadata": {"labels": LABELS, "annotations": NOTES}, "spec": POD}},
}


def test_it_is_listed_once_with_the_address_that_kserve_chose() -> None:
    kube: Any = Objects(deployments=[MADE], inferenceservices=[SERVED])
    (row,) = overview.rows(kube)
    assert (row.model, row.track, row.version, row.ready, row.replicas) == ("digits", "stable", "7", 2, 2)
    assert (row.access, row.address) == ("team", "http://model-digits-predictor.vision")
    assert models._served(kube) == {"digits": "7"}


def test_one_that_has_just_been_made_is_not_ready_and_has_no_address() -> None:
    kube: Any = Objects(inferenceservices=[{key: value for key, value in SERVED.items() if key != "status"}])
    (row,) = overview.rows(kube)
    assert (row.ready, row.replicas, row.address) == (0, 2, "not reported by KServe yet")


@pytest.mark.parametrize("status", [403, 404])
def test_a_site_without_it_has_none(status: int) -> None:
    kube: Any = Objects(inferenceservices=KubeError("no", status=status))
    assert overview.rows(kube) == [] and models._served(kube) == {}


def test_an_api_server_that_fails_is_told() -> None:
    kube: Any = Objects(inferenceservices=KubeError("broken", status=500))
    with pytest.raises(KubeError, match="broken"):
        overview.rows(kube)


def test_going_back_is_kserve_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Access, "connect", lambda self: Objects(inferenceservices=[SERVED]))
    error = CliRunner().invoke(trainyard, ["serve", "rollback", "digits"]).exception
    assert isinstance(error, TrainyardError)
    says = "vision: digits is served by KServe, which rolls back by itself. serve NAME@VERSION instead."
    assert str(error) == says
