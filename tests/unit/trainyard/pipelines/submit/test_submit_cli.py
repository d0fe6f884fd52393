"""`trainyard submit` and `trainyard runs`: errors in a command line are reported before any request."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from error_lines import sentence


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and no kubeconfig anywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name in ("KUBECONFIG", "KF_PIPELINES_ENDPOINT", "KFP_TOKEN", "TRAINYARD_CONTRACT"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "pipeline.py"
    file.write_text("from kfp import dsl\n")
    return file


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["--wait", "--detach"], 2, "--dry-run, --wait, --detach and --logs exclude each other."),
        (["--dry-run", "--logs", "train"], 2, "--dry-run, --wait, --detach and --logs exclude each other."),
        (["--dry-run", "--after-started"], 2, "--after-started is only for runs in a queue. remove --after-started."),
        (["--endpoint", "https://kfp"], 2, "--endpoint is for the backend kfp. add --backend kfp."),
        ([], 1, "no kubeconfig found at ~/.kube/config."),
        (["--as-group", "staff"], 2, "--as-group needs --as."),
        (["--dry-run", "--contract", "absent.yaml"], 2, "absent.yaml: the contract can't be read"),
        (["--dry-run"], 2, "no pipeline in this file. decorate a function with @dsl.pipeline."),
    ],
)
def test_submit(trainyard: Callable[..., Any], pipeline: Path, words: list[str], code: int, error: str) -> None:
    ended = trainyard("submit", str(pipeline), *words)
    assert error in sentence(ended.err.removeprefix("checked against the chart's defaults\n"))
    assert "Traceback" not in ended.err
    assert ended.code == code


def test_a_file_that_is_not_there(trainyard: Callable[..., Any], pipeline: Path) -> None:
    assert "absent.py: no such file" in trainyard("submit", "absent.py").error()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["show", "r", "--follow", "-o", "json"], "--follow only shows the table. remove --lineage and -o."),
        (["list"], "no kubeconfig found at ~/.kube/config."),
        (["stop", "r"], "no kubeconfig found at ~/.kube/config."),
    ],
)
def test_runs(trainyard: Callable[..., Any], pipeline: Path, words: list[str], error: str) -> None:
    assert error in trainyard("runs", *words).error()


def test_completion_is_silent_without_a_cluster(pipeline: Path) -> None:
    import click
    from click.shell_completion import ShellComplete

    from trainyard.cli import trainyard as command

    complete = ShellComplete(command, {}, "trainyard", "_TRAINYARD_COMPLETE")
    assert complete.get_completions(["runs", "show"], "") == []
    assert isinstance(command, click.Group)
