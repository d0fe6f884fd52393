"""Copying code into a pod waits for a store that is unavailable, but not for one that refuses."""

import pytest
import urllib3
import yaml
from minio.error import S3Error

from trainyard.paths import ROOT
from trainyard_agent.runs import run_files
from trainyard_agent.say import PlatformError
from trainyard_agent.store import objects


def s3_error(code: str) -> S3Error:
    return S3Error(urllib3.HTTPResponse(status=503), code, "said", None, None, None)  # type: ignore[arg-type]


def patiently(*errors: Exception) -> list[float]:
    """How long it slept between tries that fail with these errors."""
    left, slept = list(errors), list[float]()

    def action() -> None:
        if left:
            with objects.store_errors("s3://runs/vision/code"):
                raise left.pop(0)

    run_files.patiently(action, slept.append)
    return slept


def test_code_comes_after_the_store_was_away_for_two_minutes() -> None:
    away = urllib3.exceptions.ProtocolError("refused")
    assert sum(patiently(*[away] * 12, s3_error("XMinioServerNotInitialized"))) > 120


def test_a_store_that_stays_away_is_given_up_when_argo_does() -> None:
    slept = list[float]()
    argo = yaml.safe_load((ROOT / "charts/argo/values.yaml").read_text())["executor"]["storeOutageSeconds"]

    def action() -> None:
        with objects.store_errors("s3://runs/vision/code"):
            raise urllib3.exceptions.ProtocolError("refused")

    with pytest.raises(PlatformError, match="does not answer"):
        run_files.patiently(action, slept.append)
    assert argo <= sum(slept) <= argo + run_files.LONGEST_WAIT_S


def test_a_refusal_is_reported_at_once() -> None:
    with pytest.raises(PlatformError, match="refuses s3://runs/vision/code: AccessDenied"):
        patiently(s3_error("AccessDenied"))
