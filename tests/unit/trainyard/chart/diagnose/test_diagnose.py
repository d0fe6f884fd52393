"""The rules that name a cause: each matches objects as in a real cluster, and none matches a healthy cluster."""

from typing import Any

import pytest
from diagnose_cases import CASES
from fake_cluster import NOW, broken, condition, healthy, node, pending, pod, waiting

from trainyard.chart.diagnose import Collected, probable_cause
from trainyard.chart.diagnose.cause import matching
from trainyard.chart.diagnose.rules import RULES
from trainyard.times import moment


def test_a_healthy_cluster_has_no_cause() -> None:
    assert matching(healthy()) == []
    assert probable_cause(healthy()) == ""


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_each_rule_names_its_cause_first(rule: str, change: dict[str, Any], words: tuple[str, ...]) -> None:
    found = matching(broken(change))
    assert found, "no rule applied"
    assert found[0][0] == rule
    sentence = probable_cause(broken(change))
    assert "\n" not in sentence
    assert sentence.endswith((".", "!", "?"))
    for word in words:
        assert word in sentence


def test_every_rule_has_a_case_and_its_own_name() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {case[0] for case in CASES} == set(names)


def test_the_cause_comes_before_what_it_brings_about() -> None:
    """An image that can't be had, the gang that waits for it, and the job that failed in the end."""
    found = Collected(
        nodes=[node()],
        pods=[
            pod("mnist-worker-0", phase="Pending", ready=False, state=waiting("ImagePullBackOff", "not found")),
            pending("mnist-worker-1", conditions=condition("PodScheduled", "False", "gang")),
        ],
        checks=[{"id": "train.x", "status": "failed", "reason": "timed out", "figures": {"accuracy": 0.0, "bar": 0.9}}],
    )
    assert [name for name, _ in matching(found)] == ["image", "unschedulable", "accuracy"]


def test_what_was_made_to_be_refused_is_no_cause() -> None:
    found = broken({"pods": [pending("refused-0", conditions=condition("PodScheduled", "False", "gang"))]})
    assert matching(found)[0][0] == "unschedulable"
    found.expected = ("refused-",)
    assert probable_cause(found) == ""


def test_a_pod_that_only_just_starts_is_no_cause() -> None:
    young = pod("young", phase="Pending", ready=False, state=waiting("ContainerCreating"))
    young["metadata"]["creationTimestamp"] = NOW
    found = broken({"pods": [young], "now": moment(NOW) + 30})
    found.events = []
    assert probable_cause(found) == ""
    found.now += 60
    assert "young" in probable_cause(found)


def test_no_rule_matched_says_where_to_look() -> None:
    found = healthy()
    found.checks = [{"id": "storage.rwx", "status": "failed", "reason": "the second pod read other bytes"}]
    sentence = probable_cause(found)
    assert sentence.startswith("No rule matched: check storage.rwx failed")
    assert "events.txt" in sentence
    found.checks = []
    found.problems = ["pods: no answer within 20 s"]
    assert "could not be read in full" in probable_cause(found)
    odd = Collected(pods=[pod("odd", ready=False)])
    assert "odd" in probable_cause(odd)


def test_odd_objects_do_not_break_the_diagnosis() -> None:
    odd: dict[str, Any] = {"metadata": None, "status": None, "spec": None}
    found = Collected(
        events=[odd, {}],
        pods=[odd, {}],
        nodes=[odd, {}],
        podgroups=[odd],
        queues=[odd],
        jobs=[odd],
        claims=[odd],
        checks=[{}],
    )
    assert isinstance(probable_cause(found), str)
    assert not [p for p in found.problems if p.startswith("rule")]
    found = Collected(
        nodes=[
            {"metadata": {"labels": {"trainyard.io/pool": "gpu"}}, "status": {"capacity": {"nvidia.com/gpu": "many"}}}
        ]
    )
    assert probable_cause(found).startswith("No rule matched")
    assert any(p.startswith("rule no-gpus") for p in found.problems)
