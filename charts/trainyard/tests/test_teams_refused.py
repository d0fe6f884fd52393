"""Invalid or contradictory team blocks are refused with a clear message."""

from __future__ import annotations

from typing import Any

import pytest
from found import SYSTEM
from team_values import EXTERNAL, SPEECH, VISION, values

from rendering import Rendering

INVALID: list[tuple[list[dict[str, Any]], dict[str, Any], list[str]]] = [
    ([VISION, {**SPEECH, "name": "vision"}], {}, ['"vision" is listed twice']),
    ([VISION, {**SPEECH, "gid": 20001}], {}, ["gid 20001", 'team "vision"']),
    ([{**SPEECH, "name": "training"}], {}, ["name of a queue", "rename"]),
    ([{**SPEECH, "name": "root"}], {}, ["reserved name"]),
    ([{**SPEECH, "name": "kube-a"}], {}, ["reserved name"]),
    ([{**SPEECH, "name": "shared"}], {}, ["reserved name"]),  # the prefix of buckets that all teams read
    ([{**SPEECH, "name": SYSTEM}], {}, ["reserved name"]),
    ([{**SPEECH, "queue": {"parent": "nobody"}}], {}, ["queue.parent", '"nobody"']),
    ([VISION, {**SPEECH, "queues": ["vision"]}], {}, ['queue "vision"', "not among global.contract.queues"]),
    ([VISION, {**SPEECH, "queues": ["department"]}], {}, ['"department"', "stop all scheduling"]),
    ([{**SPEECH, "queue": {"parent": "training"}}], {}, ["defaultQueue", "stop all scheduling"]),
    ([{**SPEECH, "priorityClasses": ["urgent"]}], {}, ['priority class "urgent"', "training-low"]),
    ([{**SPEECH, "quota": {"urgent": {"pods": 1}}}], {}, ['quota for "urgent"', "priorityClasses"]),
    ([{**SPEECH, "quota": {"all": {"nvidia.com/gpu": 9}}}], {}, ["never counted", "requests.nvidia.com/gpu"]),
    ([{**SPEECH, "quota": {"all": {"gpus": 9, "requests.nvidia.com/gpu": 9}}}], {}, ["the same", "keep one"]),
    ([{**SPEECH, "quota": {"all": {"gpus": 4}}}], {}, ["maxGpusPerJob is 8", "quota.all", "4 GPUs"]),
    ([{**SPEECH, "queue": {"capability": {"nvidia.com/gpu": 0}}}], {}, ["maxGpusPerJob is 8", "queue.capability"]),
    ([{**SPEECH, "counts": {"pods": 100}}], {}, ["quota.all allows 200 running pods", "raise counts.pods"]),
    ([{**SPEECH, "name": "trainyard-system-webhook"}], {}, ["reserved name"]),
    ([{**SPEECH, "limits": {"requests": {"cpu": "9"}}}], {}, ["limits.requests.cpu (9)", "lower the request"]),
    ([{**SPEECH, "limits": {"max": {"cpu": "4"}}}], {}, ["limits.limits.cpu (8)", "limits.max.cpu (4)", "maximum"]),
    ([SPEECH], {"platformPriorityClass": {"name": "top", "value": 1000}}, ["displace the platform's"]),
    ([SPEECH], {"platformPriorityClass": {"name": "training-low", "value": 9}}, ["class of the platform's own pods"]),
    ([{**SPEECH, "storage": {"workspace": "1Ti"}}], {}, ["storage.workspace (1Ti)", "storage.maxClaim (100Gi)"]),
    ([{**SPEECH, "storage": {"total": "50Gi"}}], {}, ["storage.maxClaim (100Gi)", "storage.total (50Gi)"]),
    ([SPEECH], {"storage": {"s3": EXTERNAL}}, ["global.contract.network.s3"]),
    ([{"name": "Vision", "gid": 20001}], {}, ["/teams/0/name"]),
    ([{"name": "vision"}], {}, ["/teams/0", "gid"]),
    ([{"name": "vision", "gid": 10}], {}, ["/teams/0/gid", "minimum"]),
    ([{"name": "vision", "gid": 65534}], {}, ["/teams/0/gid"]),
    ([{**SPEECH, "membrs": {}}], {}, ["membrs"]),
    ([{**SPEECH, "queue": {"wieght": 2}}], {}, ["wieght"]),
]  # fmt: skip


@pytest.mark.parametrize(("teams", "contract", "words"), INVALID, ids=[words[-1] for *_, words in INVALID])
def test_wrong_team_is_refused_in_words(
    teams: list[dict[str, Any]], contract: dict[str, Any], words: list[str], render: Rendering
) -> None:
    said = render.refusal(values(*teams, **contract))
    assert all(word in said for word in words), said
