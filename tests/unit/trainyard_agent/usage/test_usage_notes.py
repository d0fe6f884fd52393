"""Records of usage: what is kept of them, and the role, job and workload of a pod."""

import json

import pytest

from trainyard.rightsize import usage as product
from trainyard_agent.usage.figures import job_of, role_of, workload_of
from trainyard_agent.usage.notes import LARGEST, RUNS, Notes, read


def test_notes_stay_below_what_a_config_map_holds_and_keep_the_newest() -> None:
    notes = Notes()
    part = {"container": "main", "pods": 1, "oom": 0, "cpu": {"p95": 1.234}}
    parts = [{"role": f"role-{index}", **part} for index in range(16)]
    for turn in range(RUNS):
        for number in range(300):
            run = notes.add(f"job-{number}", "Job", f"job-{number}-{turn}", 1000.0 * turn + number)
            notes.measured(run, [dict(part) for part in parts], at=1, last=2, ended=True)
    body = notes.jobs_text()
    assert len(notes.text(body, 120, 15)) < LARGEST + 1000
    found = json.loads(body)
    assert [job["name"] for job in found] == [f"job-{number}" for number in range(299, 99, -1)]
    assert all(job["runs"] for job in found), "each job keeps its newest run before any keeps a second"
    assert json.loads(body) == list(notes.jobs.values())
    assert read(notes.text(body, 120, 15)).jobs == notes.jobs


@pytest.mark.parametrize(
    ("job", "pod", "role"),
    [
        ("mnist", "mnist-worker-12", "worker"),
        ("mnist", "mnist-launcher", "launcher"),
        ("prep", "prep-x7k2v", ""),
        ("prep", "prep-3-x7k2v", ""),
        ("ddp-b4x2z", "ddp-b4x2z-master-0", "master"),
        ("alone", "alone", ""),
    ],
)
def test_the_role_of_a_pod(job: str, pod: str, role: str) -> None:
    assert role_of(job, pod) == role


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("ddp-b4x2z", "ddp"),
        ("nightly-29512345", "nightly"),
        ("mnist-first", "mnist-first"),
        ("mnist", "mnist"),
        ("b4x2z", "b4x2z"),
    ],
)
def test_runs_of_one_job_have_one_name(name: str, job: str) -> None:
    assert job_of(name) == job == product.base(name)


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("trainyard-scheduler-6bd7f9c5d4-x2x4z", "trainyard-scheduler"),
        ("trainyard-node-prep-x2x4z", "trainyard-node-prep"),
        ("trainyard-minio-0", "trainyard-minio"),
        ("trainyard-janitor-29512345-x2x4z", "trainyard-janitor"),
    ],
)
def test_the_workload_of_a_pod(pod: str, workload: str) -> None:
    assert workload_of(pod) == workload
