"""The options in a run: their costs are read correctly, and what they may leave is what the chart states."""

from typing import Any

import pytest

from trainyard.chart import helm
from trainyard_dev.chart import package
from trainyard_dev.e2e import options, releases
from trainyard_dev.e2e.checks import costs


def summary(*cpu: float, at: str = "2026-11-24T16:17:51Z") -> dict[str, Any]:
    told = [{"cpu": {"time": at, "usageCoreNanoSeconds": one * 1e9}, "memory": {"workingSetBytes": 64 * costs.MIB}}
            for one in cpu]  # fmt: skip
    return {"podRef": {"name": "p", "namespace": "trainyard-system"}, "containers": told}


def pod(limit: str = "128Mi", ready: str = "2026-11-24T16:17:07Z") -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "labels": {"app.kubernetes.io/name": "logs"},
                     "creationTimestamp": "2026-11-24T16:17:00Z"},
        "spec": {"containers": [{"resources": {"limits": {"memory": limit}}}, {"resources": {}}]},
        "status": {"startTime": "2026-11-24T16:17:01Z",
                   "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ready}]},
    }  # fmt: skip


def test_cores_are_the_mean_between_two_looks() -> None:
    began, now = costs.summed(summary(1, 2)), costs.summed(summary(4, 5, at="2026-11-24T16:18:51Z"))
    assert began and now
    found = costs.row("logs", pod(), began, now)
    assert found["cores"] == 0.1 and found["memory_mib"] == 128 and found["limit_mib"] == 128
    assert (found["option"], found["part"], found["ready_s"]) == ("logs", "logs", 7.0)
    # A pod that is younger than the first reading: since it began.
    assert costs.row("logs", pod(), None, now)["cores"] == pytest.approx(9 / 110, abs=1e-4)


def test_a_pod_that_kubelet_has_not_looked_at_yet_has_no_figure() -> None:
    assert costs.summed({"podRef": {}}) is None
    half = summary(1)
    half["containers"].append({"cpu": {}, "memory": {}})
    assert costs.summed(half) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"cores": 0.0}, ""),  # it slept
        ({"cores": -0.1}, "kubelet reports that p uses -0.1 cores"),
        ({"memory_mib": 0.0}, "kubelet reports that p uses 0.1 cores and 0.0 MiB"),
        ({"cores": 1.5}, "p uses 1.5 cores, 1 are allowed"),
        ({"memory_mib": 128.0}, "p has 128.0 MiB, its limit is 128"),
        ({"limit_mib": 0.0}, "its limit is not set"),
        ({"ready_s": -1.0}, "p is not ready within 180 s"),
        ({"ready_s": 200.0}, "p is not ready within 180 s"),
    ],
)
def test_what_is_beyond_its_bound_is_said(change: dict[str, float], said: str) -> None:
    one = {"pod": "p", "cores": 0.1, "memory_mib": 60.0, "limit_mib": 128.0, "ready_s": 7.0, **change}
    found = costs.beyond(one)
    assert said in found and bool(found) is bool(said)


def secrets(text: str) -> set[str]:
    return {obj["metadata"]["name"] for obj in helm.parse(text) if obj["kind"] == "Secret"}


def test_claims_that_stay_are_those_of_the_option_and_what_is_beside_it_is_named_right() -> None:
    """By the chart's own objects: a claim that a new server brings must be said to stay, or this fails."""
    files: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for option in options.ALL:
        texts[option] = package.template("kind", sets=[f"{option}.enabled=true"])
        made = options.of_text(texts[option], options.ALL)
        assert [one for one in options.ALL if made[one]] == [option]
        files[option] = [
            f"{claim['metadata']['name']}-{obj['metadata']['name']}-0"
            for obj in made[option]
            for claim in obj.get("spec", {}).get("volumeClaimTemplates", [])
        ]
        assert not [obj for obj in made[option] if obj["kind"] == "PersistentVolumeClaim"]
    assert {option: sorted(found) for option, found in files.items()} == {
        option: sorted(found) for option, found in options.CLAIMS.items()
    }
    # Each key that comes with an option alone goes with it, and no other Secret is new.
    plain = secrets(package.template("kind"))
    new = {name for option in options.ALL for name in secrets(texts[option]) - plain}
    beside = {name for option in options.ALL for kind, _, name in options.BESIDE[option] if kind == "Secret"}
    own = {obj["metadata"]["name"] for one in options.ALL for obj in options.of_text(texts[one], [one])[one]}
    assert new - own == beside == releases.PASSING - {"trainyard-kfp-s3"}  # that of an option which isn't among these
