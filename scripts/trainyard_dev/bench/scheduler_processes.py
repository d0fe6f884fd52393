"""Volcano and kube-scheduler as processes; their own counters show when each has nothing left to do."""

import functools
import http.client
import re
import ssl
from time import monotonic, sleep
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import Harness

START_S, STUCK_S = 60.0, 600.0
ROUNDS = 3  # a round that began before a change, one that may have missed it, and one that has seen it
PATIENCE = 100  # rounds while a pod is neither placed nor refused: the scheduler may not have seen it yet
PERIOD_MS = 20
SPARING = 9  # longest pause between queries, in query times: counters of thousands of jobs are costly
SAMPLE = re.compile(r"^(\w+)(\{[^}]*\})? ([0-9.e+-]+)$", re.MULTILINE)


class Volcano:
    """The process vc-scheduler, settled when whole rounds have passed without a change and no binding is pending."""

    def __init__(self, harness: Harness, column: Configuration, period_ms: int) -> None:
        folder = harness.server.folder
        [self.port] = free_ports(1)
        file = folder / "vc-scheduler.yaml"
        file.write_text(column.config)
        self.process = Server(
            [
                tools.binary("vc-scheduler"), "--kubeconfig", harness.server.kubeconfig, "--scheduler-conf", file,
                "--scheduler-name=volcano", "--leader-elect=false", "--cache-dumper=false", "--enable-metrics=true",
                "--enable-pprof=true", f"--listen-address=127.0.0.1:{self.port}", "--disable-default-scheduler-config",
                "--v=1", *column.flags, f"--schedule-period={period_ms}ms",
            ],
            folder / "vc-scheduler.log",
            env=dict(column.env) | {"DEBUG_SOCKET_DIR": str(folder)},
        )  # fmt: skip
        self.process.wait(lambda: self.rounds() > 0 and _queues(harness), START_S)
        self._before = harness.bindings  # bindings that an earlier scheduler made
        self._asked, self._asked_rounds = monotonic(), 0.0
        self._round_s = PERIOD_MS / 1000

    def settle(self, harness: Harness) -> None:
        """See the class."""
        end = monotonic() + STUCK_S
        state, since = (-1, -1), 0.0
        while True:
            asked = monotonic()
            sample, cost = _timed(self.port)
            rounds = sample.get("volcano_e2e_scheduling_latency_milliseconds_count", 0)
            given = sample.get("volcano_task_scheduling_latency_milliseconds_count", 0)
            now = (harness.moves, int(given))
            if now != state:
                state, since = now, rounds
            elif (
                rounds >= since + ROUNDS
                and given == 2 * (harness.bindings - self._before)  # counted when assigned and when bound
                and (rounds >= since + PATIENCE or all(pod.node or pod.refused for pod in list(harness.pods.values())))
            ):
                return
            if monotonic() > end:
                raise TrainyardError(f"vc-scheduler was still running after {STUCK_S:.0f} s", hint="see its log")
            self._pace(asked, rounds)
            needed = max(1, since + ROUNDS - rounds) * self._round_s
            sleep(max(PERIOD_MS / 2000, min(SPARING * cost, needed)))

    def _pace(self, asked: float, rounds: float) -> None:
        """Updates the duration of a round from the previous query."""
        if rounds > self._asked_rounds:
            self._round_s = (asked - self._asked) / (rounds - self._asked_rounds)
        self._asked, self._asked_rounds = asked, rounds

    def rounds(self) -> float:
        """The number of rounds that have ended."""
        return metrics(self.port).get("volcano_e2e_scheduling_latency_milliseconds_count", 0)


class Kube:
    """The process kube-scheduler, settled when all pods have been tried and its queues stay empty for a while."""

    quiet_s = 0.15

    def __init__(self, harness: Harness, column: Configuration) -> None:
        folder = harness.server.folder
        [self._port] = free_ports(1)
        file = folder / "kube-scheduler.yaml"
        config: dict[str, Any] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(harness.server.kubeconfig), "qps": 2000, "burst": 2000},
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
        }
        file.write_text(yaml.safe_dump(config | (yaml.safe_load(column.config) or {})))
        self.process = Server(
            [
                tools.binary("kube-scheduler"), "--config", file, f"--secure-port={self._port}",
                "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/metrics,/healthz,/debug/pprof/*",
                f"--cert-dir={folder / 'kube-scheduler'}", "--v=1", *column.flags,
            ],
            folder / "kube-scheduler.log",
        )  # fmt: skip
        self.process.wait(lambda: bool(metrics(self._port, tls=True)), START_S)

    def settle(self, harness: Harness) -> None:
        """See the class."""
        end = monotonic() + STUCK_S
        state, since = -1, monotonic()
        while True:
            sample, cost = _timed(self._port, tls=True)
            waiting = sum(
                value
                for key, value in sample.items()
                if key.startswith("scheduler_pending_pods") and ("active" in key or "backoff" in key)
            )
            tried = all(pod.node or pod.refused for pod in list(harness.pods.values()))
            if harness.changes != state or waiting or not tried:
                state, since = harness.changes, monotonic()
            elif monotonic() > since + self.quiet_s:
                return
            if monotonic() > end:
                raise TrainyardError(f"kube-scheduler was still running after {STUCK_S:.0f} s", hint="see its log")
            sleep(max(0.01, min(SPARING * cost, self.quiet_s)))


def metrics(port: int, *, tls: bool = False, token: str = "") -> dict[str, float]:
    """Reads all samples of a program's metrics, by name with labels; empty while it doesn't answer."""
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, context=_unchecked(), timeout=10)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    )
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        text = connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return {}
    finally:
        connection.close()
    return {name + labels: float(value) for name, labels, value in SAMPLE.findall(text)}


def _timed(port: int, *, tls: bool = False) -> tuple[dict[str, float], float]:
    """Reads a program's metrics; returns them with the seconds that the query took."""
    began = monotonic()
    return metrics(port, tls=tls), monotonic() - began


@functools.cache
def _unchecked() -> ssl.SSLContext:
    """A TLS context that accepts any certificate; made once, since loading the system's authorities is slow."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _queues(harness: Harness) -> bool:
    return bool(harness.server.call("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/default").ok)
