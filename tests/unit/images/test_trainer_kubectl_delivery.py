"""The launcher's init container, with a fake kubectl."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "charts/training-operator/images/kubectl-delivery/deliver.sh"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a target, a hostfile of two workers and a kubectl that answers from files named after pods."""
    (tmp_path / "target").mkdir()
    (tmp_path / "hostfile").write_text("job-launcher slots=1\njob-worker-0 slots=1\njob-worker-1 slots=1")
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"""#!/bin/sh
echo "$@" >> {tmp_path}/calls
[ -e {tmp_path}/$3 ] || {{ echo "pods \\"$3\\" not found" >&2; exit 1; }}
cat {tmp_path}/$3
""")
    kubectl.chmod(0o755)
    return tmp_path


def deliver(place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(place),
        "TARGET_DIR": str(place / "target"),
        "HOSTFILE": str(place / "hostfile"),
        "KUBECTL": str(place / "kubectl"),
        "NAMESPACE": "team-a",
        "HOSTNAME": "job-launcher",
        "WAIT_SECONDS": "2",
        **more,
    }
    return subprocess.run(["sh", str(SCRIPT)], env=env, capture_output=True, text=True, timeout=30, check=False)


def test_delivers_once_all_workers_run(place: Path) -> None:
    for worker in ("job-worker-0", "job-worker-1"):
        (place / worker).write_text("Running")
    done = deliver(place)
    assert done.returncode == 0, done.stderr
    assert os.access(place / "target/kubectl", os.X_OK)
    assert [path.name for path in (place / "target").iterdir()] == ["kubectl"], "no part of a copy is left"
    calls = (place / "calls").read_text().splitlines()
    assert len(calls) == 2, "the launcher itself is not waited for"
    assert all("--namespace team-a" in call for call in calls)


def test_says_which_worker_is_late_and_why(place: Path) -> None:
    (place / "job-worker-0").write_text("Running")
    done = deliver(place)
    assert done.returncode == 1
    assert done.stderr == 'error: worker job-worker-1 is not running after 2 s: pods "job-worker-1" not found\n'


def test_does_not_wait_for_a_worker_that_has_failed(place: Path) -> None:
    (place / "job-worker-0").write_text("Failed")
    done = deliver(place, WAIT_SECONDS="600")
    assert done.returncode == 1
    assert done.stderr == "error: worker job-worker-0 has ended already (Failed)\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"NAMESPACE": ""}, "NAMESPACE is not set"),
        ({"HOSTFILE": "/nowhere/hostfile"}, "/nowhere/hostfile can't be read"),
        ({"TARGET_DIR": "/nowhere"}, "kubectl can't be placed in /nowhere"),
    ],
)
def test_bad_surroundings_are_one_sentence(place: Path, more: dict[str, str], message: str) -> None:
    done = deliver(place, **more)
    assert done.returncode == 1
    assert f"error: {message}" in done.stderr
