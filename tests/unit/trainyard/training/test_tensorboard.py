"""TensorBoard's pod: its rights, how it ends, and that the platform's own rules admit it without warnings."""

from dataclasses import replace
from typing import Any

import pytest
from sites import with_team

from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig
from trainyard.pipelines import lint
from trainyard.training import tensorboard

SITE = with_team()
CONFIG = TeamConfig.of(SITE, "vision")


def made() -> dict[str, Any]:
    return tensorboard.manifest(CONFIG, "trainyard-tensorboard-1", ["runs/vision/jobs/a/results=a"], 7200)


def test_lint_and_the_admission_rules_have_nothing_against_it() -> None:
    assert [one.reason for one in lint.manifest(made(), lint.site(SITE))] == []


def test_it_ends_by_itself_and_leaves_nothing() -> None:
    spec = made()["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"], spec["backoffLimit"]) == (7200, 0, 0)


def test_tensorboard_has_no_keys_and_listens_to_its_pod_alone() -> None:
    board, mirror = made()["spec"]["template"]["spec"]["containers"]
    assert not [one for one in board["env"] if one["name"].startswith("S3_")]
    assert "--host=127.0.0.1" in board["command"] and board["volumeMounts"][0]["readOnly"]
    assert {"S3_ACCESS_KEY", "S3_SECRET_KEY"} <= {one["name"] for one in mirror["env"]}
    assert mirror["args"][-1] == "runs/vision/jobs/a/results=a"


def test_a_platform_without_the_image_says_so() -> None:
    with pytest.raises(TrainyardError, match="names no image trainerTorch, which has TensorBoard"):
        tensorboard.manifest(replace(CONFIG, contract=replace(SITE, images={})), "x", [], 60)
