"""What the agent asks of Prometheus about usage, answered by Prometheus itself out of series as kubelets give them."""

from __future__ import annotations

import http.server
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_agent.prometheus import Prometheus, PrometheusError
from trainyard_agent.usage import BEGUN, GOING, PODS
from trainyard_agent.usage_figures import Figures, role_of
from trainyard_dev import tools

GIB = 1 << 30
SCRAPE_S, LONG_S = 1, 24
CORES = {"ddp-master-0": 0.5, "ddp-worker-0": 2.0, "ddp-worker-1": 3.0}


class Kubelet(http.server.BaseHTTPRequestHandler):
    """Series of three pods, of which each uses its cores evenly; the last one is throttled and was killed once."""

    begun = 0.0

    def do_GET(self) -> None:
        now = time.time()
        lines = []
        for pod, cores in CORES.items():
            of = f'namespace="vision",pod="{pod}",container="pytorch"'
            place = f'namespace="vision",pod="{pod}"'
            late = pod.endswith("-1")
            lines += [
                f'container_cpu_usage_seconds_total{{{of},id="/a"}} {cores * (now - self.begun)}',
                f'container_memory_working_set_bytes{{{of},id="/a"}} {cores * GIB}',
                f"container_cpu_cfs_periods_total{{{of}}} {(now - self.begun) * 10}",
                f"container_cpu_cfs_throttled_periods_total{{{of}}} {(now - self.begun) * 4 * late}",
                f'kube_pod_container_resource_requests{{{of},resource="cpu",unit="core",node="n"}} 4',
                f'kube_pod_container_resource_requests{{{of},resource="nvidia_com_gpu",unit="integer",node="n"}} 2',
                f'kube_pod_container_resource_limits{{{of},resource="memory",unit="byte",node="n"}} {8 * GIB}',
                f"kube_pod_start_time{{{place}}} {self.begun}",
                f'kube_pod_status_phase{{{place},phase="Running"}} 1',
                f'kube_pod_status_phase{{{place},phase="Failed"}} 0',
                f'trainyard_pod_job{{{place},team="vision",queue="q",job="ddp",kind="PyTorchJob",person="ada"}} 1',
            ]
            for gpu in (0, 1):
                lines += [
                    f'DCGM_FI_DEV_GPU_UTIL{{{of},gpu="{gpu}"}} {80 * gpu}',
                    f'DCGM_FI_DEV_FB_USED{{{of},gpu="{gpu}"}} {1024 * (1 + gpu)}',
                    f'DCGM_FI_DEV_FB_FREE{{{of},gpu="{gpu}"}} {1024 * (3 - gpu)}',
                ]
        killed = 'namespace="vision",pod="ddp-worker-1",container="pytorch",reason="OOMKilled"'
        lines.append(f"kube_pod_container_status_last_terminated_reason{{{killed}}} 1")
        # Of the same name, in another team.
        lines.append('container_memory_working_set_bytes{namespace="speech",pod="ddp-worker-1",container="x"} 1')
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, after it has asked for some time; skips where it can't be built."""
    try:
        program = tools.binary("prometheus")
    except TrainyardError as error:
        pytest.skip(f"no prometheus: {error}")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    Kubelet.begun = time.time()
    kubelet = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    threading.Thread(target=kubelet.serve_forever, daemon=True).start()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {SCRAPE_S}s}}\nscrape_configs:\n  - job_name: all\n    honor_labels: true\n"
        f"    static_configs: [{{targets: ['127.0.0.1:{kubelet.server_port}']}}]\n"
    )
    words = [
        f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--log.level=error",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    server = subprocess.Popen([str(program), *words])
    found = Prometheus(f"http://127.0.0.1:{port}")
    try:
        end = time.monotonic() + 120
        while True:
            try:
                taken = found.vector("count_over_time(up[10m])", time.time())
            except PrometheusError:
                taken = []
            if taken and taken[0][1] >= LONG_S:
                break
            assert time.monotonic() < end, "Prometheus takes no samples"
            time.sleep(0.5)
        yield found
    finally:
        server.terminate()
        server.wait()
        kubelet.shutdown()


def test_every_figure_is_what_the_series_say(prometheus: Prometheus) -> None:
    at = time.time()
    figures = Figures(prometheus, SCRAPE_S)
    master, worker = figures.parts("vision", list(CORES), Kubelet.begun, at, partial(role_of, "ddp"))
    assert (master["role"], master["pods"], worker["role"], worker["pods"]) == ("master", 1, "worker", 2)
    for part, cores in ((master, 0.5), (worker, 3.0)):
        for name in ("p50", "p95"):
            assert part["cpu"][name] == pytest.approx(cores, rel=0.1)
        assert part["memory"] == {"p95": cores * GIB, "max": cores * GIB}
        assert part["samples"] >= LONG_S - 1
        assert part["asked"] == {"cpu": 4, "gpus": 2}
        assert part["limits"] == {"memory": 8 * GIB}
        assert part["gpu"] == {"util": 0.4, "memory": 2 * GIB, "of": 4 * GIB, "idle": 1}
    assert (master["oom"], worker["oom"]) == (0, 1)
    assert master["throttled"] == 0
    assert worker["throttled"] == pytest.approx(0.4, abs=0.05)
    last = figures.last("vision", list(CORES), Kubelet.begun, at)
    assert last and at - last < 10


def test_all_of_a_namespace(prometheus: Prometheus) -> None:
    found = Figures(prometheus, SCRAPE_S).parts("speech", None, Kubelet.begun, time.time(), partial(role_of, "ddp"))
    assert [(part["role"], part["container"]) for part in found] == [("worker", "x")]


def test_what_runs_and_since_when(prometheus: Prometheus) -> None:
    at = time.time()
    pods = prometheus.vector(PODS.format(window=240.0), at)
    assert sorted((one["pod"], one["job"], one["kind"]) for one, _ in pods) == [
        (pod, "ddp", "PyTorchJob") for pod in sorted(CORES)]  # fmt: skip
    assert {value for _, value in prometheus.vector(BEGUN.format(window=240.0), at)} == {Kubelet.begun}
    assert {one["pod"] for one, _ in prometheus.vector(GOING, at)} == set(CORES)


def test_a_query_that_it_does_not_take_is_named(prometheus: Prometheus) -> None:
    with pytest.raises(PrometheusError, match=r"refused a query: .*parse error"):
        prometheus.vector("sum(", time.time())
