"""Traces: the source of their files, and the nodes, pods and jobs made from them."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.bench import sources, traces

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"openb-node-{index:04d},{cpu},{cpu * 4},{gpus},{model}\n"
    for index, (cpu, gpus, model) in enumerate([(96000, 8, "G2")] * 8 + [(32000, 0, "")] * 4)
)
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
a,4000,1024,0,0,
b,8000,2048,1,1000,G2|T4
c,8000,2048,1,460,
d,64000,4096,8,1000,
"""
JOBS = "job_id,num_gpu,submit_time,duration\n2,8,5000,3000\n1,1,5000,2000\n0,32,1000,500\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with small traces."""
    folder = tmp_path / "data"
    for name, text in (
        ("openb/openb_node_list_all_node.csv", NODES),
        ("openb/openb_pod_list_default.csv", PODS),
        ("philly/trace1.csv", JOBS),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("TRAINYARD_DATA", str(folder))
    return folder


def test_a_share_keeps_each_kind_of_node(data: Path) -> None:
    half = traces.openb_nodes(0.5)
    assert [node.gpus for node in half] == [8] * 4 + [0] * 2
    assert half[0] == traces.Node("node-0000", 96000, 384000, 8, "G2")


def test_workloads_ask_for_the_demand_with_whole_gpus_only(data: Path) -> None:
    nodes = traces.openb_nodes()
    pods = traces.workload("default", 1, nodes)
    assert 1.3 * 64 <= sum(pod.gpus for pod in pods) < 1.3 * 64 + 8
    assert {pod.gpus for pod in traces.openb_pods("default")} == {0, 1, 8}
    assert [pod.name for pod in traces.openb_pods("default")] == ["a", "b", "d"], "c asks for a part of a GPU"
    assert [pod.name for pod in pods] == sorted({pod.name for pod in pods})
    assert {pod.models for pod in pods if pod.gpus == 1} == {("G2", "T4")}


def test_a_workload_is_the_same_for_the_same_seed_only(data: Path) -> None:
    nodes = traces.openb_nodes()
    one, same, other = (traces.workload("default", seed, nodes) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_jobs_come_by_their_time_and_then_by_their_number(data: Path) -> None:
    jobs = traces.philly("trace1")
    assert [(job.gpus, job.submit_s, job.duration_s) for job in jobs] == [(32, 1, 0.5), (1, 5, 2), (8, 5, 3)]
    assert traces.philly("trace1", 1) == jobs[:1]


def _offered(monkeypatch: pytest.MonkeyPatch, site: SimpleNamespace, text: str, wanted: str) -> None:
    monkeypatch.delenv("TRAINYARD_DATA", raising=False)
    monkeypatch.setattr(sources, "HOST", site.url)
    source = sources.Source("somewhere/trace1.csv", hashlib.sha256(wanted.encode()).hexdigest())
    monkeypatch.setattr(sources, "SOURCES", {"philly/trace1.csv": source})
    site.body = text.encode()


def test_a_trace_that_is_not_there_is_downloaded_once(
    cache: Path, site: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offered(monkeypatch, site, JOBS, JOBS)
    assert len(traces.philly("trace1")) == 3
    site.code = 404
    assert len(traces.philly("trace1")) == 3
    assert [file.name for file in (cache / "traces" / "philly").iterdir()] == ["trace1.csv"]


def test_another_file_than_the_published_one_is_refused_and_not_kept(
    cache: Path, site: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offered(monkeypatch, site, JOBS + "3,1,0,1\n", JOBS)
    with pytest.raises(TrainyardError, match=r"the file for trace philly/trace1\.csv has a wrong checksum"):
        traces.philly("trace1")
    assert list((cache / "traces" / "philly").iterdir()) == []


def test_a_source_without_the_trace_is_reported(
    cache: Path, site: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offered(monkeypatch, site, "no such page", JOBS)
    site.code = 404
    with pytest.raises(TrainyardError, match=r"the trace philly/trace1\.csv can't be downloaded: Not Found") as error:
        traces.philly("trace1")
    assert "set TRAINYARD_DATA to a folder that contains philly/trace1.csv" in str(error.value)


def test_a_trace_that_nobody_publishes_is_reported(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINYARD_DATA", raising=False)
    with pytest.raises(TrainyardError, match=r"unknown trace philly/trace9\.csv"):
        traces.philly("trace9")
