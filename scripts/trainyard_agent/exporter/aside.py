"""Data that is polled instead of watched: the backup, keys, certificates, and how much claims use."""

from __future__ import annotations

import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard_agent.api import MALFORMED, Api, ApiError, found
from trainyard_agent.exporter import certificates
from trainyard_agent.exporter.read_pods import seconds
from trainyard_agent.exporter.series import Page
from trainyard_agent.say import say
from trainyard_agent.store import key_ages
from trainyard_agent.usage import gpu_counts

BACKUP = "trainyard-backup"  # the CronJob
PROVISIONER = "app.kubernetes.io/name=nfs,app.kubernetes.io/component=provisioner,app.kubernetes.io/part-of=trainyard"
PROVISIONER_PORT = 8080
EVERY_S = 60.0
CERTIFICATES_S = 600.0
LARGEST = 8 << 20  # bytes of the file server's metrics
USED = re.compile(r'trainyard_nfs_bytes\{namespace="([^"\\]*)",claim="([^"\\]*)",.*state="live"\} ([0-9.e+]+)')


@dataclass
class SlowPoller:
    """The latest polled values. `shown` fetches a server's certificate, `fetched` a page."""

    api: Api
    shown: Callable[[str, int], str] = certificates.shown_by
    fetched: Callable[[str], str] = lambda url: fetch(url)
    backup: float | None = None
    keys: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    used: dict[tuple[str, str], float] = field(default_factory=dict)
    _next_certificates: float = 0.0
    _said: dict[str, str] = field(default_factory=dict)

    def run(self, stop: threading.Event, contract: Callable[[], Mapping[str, Any]]) -> None:
        """Polls every minute until told to stop."""
        while True:
            self.look(contract(), time.monotonic())
            if stop.wait(EVERY_S):
                return

    def look(self, contract: Mapping[str, Any], at: float) -> None:
        """One round; a failed query doesn't stop the others. `at`: seconds of a monotonic clock."""
        self._try("the backup", self._look_backup)
        self._try("the age of keys", self._look_keys)
        self._try("what claims use", self._look_claims)
        if at >= self._next_certificates:
            self._next_certificates = at + CERTIFICATES_S
            self._try("certificates", lambda: self._look_certificates(contract))

    def write(self, page: Page, teams: set[str], now: float) -> None:
        """Writes the poller's series; `now` in seconds since 1970."""
        if self.backup is not None:
            page.add("trainyard_backup_last_success_timestamp_seconds", (), self.backup)
        for name, end in self.ends.items():
            page.add("trainyard_certificate_expiry_timestamp_seconds", (name,), end)
        for name, since in self.keys.items():
            page.add("trainyard_key_age_seconds", (name,), max(0.0, now - since))
        for (team, claim), used in self.used.items():
            if team in teams:
                page.add("trainyard_claim_bytes", (team, claim, "used"), used)

    def _look_backup(self) -> None:
        job = found(self.api, f"/apis/batch/v1/namespaces/{self.api.namespace}/cronjobs/{BACKUP}") or {}
        status = job.get("status") or {}
        if not job or (job.get("spec") or {}).get("suspend"):
            self.backup = None
        elif status.get("lastSuccessfulTime"):
            self.backup = seconds(gpu_counts.time(status["lastSuccessfulTime"]))
        else:
            self.backup = 0.0 if status.get("lastScheduleTime") and not status.get("active") else None

    def _look_keys(self) -> None:
        held = found(self.api, f"/api/v1/namespaces/{self.api.namespace}/configmaps/{key_ages.NAME}") or {}
        times = (held.get("data") or {}).items()
        self.keys = {f"team/{team}": seconds(gpu_counts.time(at)) for team, at in times if at}

    def _look_claims(self) -> None:
        """Reads the usage of all claims from the provisioner, which measures them in turn; empty without one."""
        query = {"labelSelector": PROVISIONER, "limit": "10"}
        measured: dict[tuple[str, str], float] = {}
        for pod in self.api.get(f"/api/v1/namespaces/{self.api.namespace}/pods", query).get("items") or []:
            address = (pod.get("status") or {}).get("podIP") or ""
            if address and (pod.get("status") or {}).get("phase") == "Running":
                host = f"[{address}]" if ":" in address else address
                text = self.fetched(f"http://{host}:{PROVISIONER_PORT}/metrics")
                measured |= {(team, claim): used for team, claim, used in live(text)}
        self.used = measured

    def _look_certificates(self, contract: Mapping[str, Any]) -> None:
        self.ends = certificates.expiries(self.api, contract, self.shown)

    def _try(self, what: str, look: Callable[[], None]) -> None:
        trouble = ""
        try:
            look()
        except ApiError as error:
            trouble = error.message
        except (OSError, *MALFORMED) as error:
            trouble = f"{type(error).__name__}: {error}"
        if trouble and trouble != self._said.get(what):
            say(f"{what} is unknown: {trouble}")
        self._said[what] = trouble


def fetch(url: str) -> str:
    """A page of one of the platform's pods, fetched without a proxy. Raises OSError."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
        text: bytes = answer.read(LARGEST)
    return text.decode(errors="replace")


def live(text: str) -> Iterator[tuple[str, str, float]]:
    """(team, claim, bytes) from the metrics of the file server's provisioner; deleted claims are left out."""
    for line in text.splitlines():
        if hit := USED.fullmatch(line):
            yield hit[1], hit[2], float(hit[3])
