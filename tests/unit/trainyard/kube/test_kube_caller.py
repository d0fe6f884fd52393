"""Who makes an object is written on it as the cluster knows them."""

from __future__ import annotations

from typing import Any

from trainyard.kube import KubeError, caller
from trainyard.names import SUBMITTER


class Cluster:
    """A cluster that knows its caller, or doesn't say."""

    def __init__(self, who: str) -> None:
        self.who = who

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        assert obj == {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        if not self.who:
            raise KubeError("not found", status=404)
        return {"status": {"userInfo": {"username": self.who}}}


def test_it_is_signed_beside_what_is_noted_already() -> None:
    obj: dict[str, Any] = {"metadata": {"annotations": {"own": "note"}}}
    caller.sign(Cluster("ada"), obj)  # type: ignore[arg-type]
    assert obj["metadata"]["annotations"] == {"own": "note", SUBMITTER: "ada"}


def test_it_stays_unsigned_where_the_cluster_does_not_say() -> None:
    obj: dict[str, Any] = {"metadata": {}}
    caller.sign(Cluster(""), obj)  # type: ignore[arg-type]
    assert obj == {"metadata": {}}
