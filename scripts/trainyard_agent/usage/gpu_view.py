"""Publishes the numbers of free and held GPUs and the queues' waiting times to members, who can't see nodes.

ConfigMap `trainyard-gpus` has the view for everyone, `trainyard-gpus-<team>` the one of a team. The chart creates
them and their permissions; this module fills them in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from trainyard_agent import rounds
from trainyard_agent.api import MALFORMED, Api, ApiError, listed, needed
from trainyard_agent.say import PlatformError, say
from trainyard_agent.usage import gpu_counts

NAME, KEY, MANAGER = "trainyard-gpus", "gpus.json", "trainyard-gpu-view"
PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
AT_ONCE = {"limit": "250"}  # objects held in memory at a time
ANEW = 20  # rounds after which a team's numbers are written even if nothing changed


class View:
    """The last published numbers; `look` publishes the current ones."""

    def __init__(self, api: Api, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.api, self.now = api, now
        self._written: dict[str, str] = {}
        # Refused once: a new team's permissions come a moment after its line in the contract.
        self._awaited: set[str] = set()
        self._rounds = 0

    def look(self, contract: dict[str, Any], period: float) -> None:
        """One round. Raises PlatformError if the cluster can't be read, or with the names of what wasn't written."""
        pools, at = contract["nodePools"], self.now()
        with needed("the cluster can't be read"):
            cluster = self.read(pools)
        head = {"schema": gpu_counts.SCHEMA, "at": gpu_counts.stamp(at), "everySeconds": period}
        texts = {NAME: json.dumps(head | gpu_counts.shared(cluster, pools))}
        for team in contract.get("teams") or []:
            queues = list(dict.fromkeys([team["name"], *(team.get("queues") or [])]))
            seen = gpu_counts.of_team(cluster, team["name"], queues, at)
            texts[f"{NAME}-{team['name']}"] = json.dumps({"schema": gpu_counts.SCHEMA} | seen)
        if self._rounds % ANEW == 0:
            self._written.clear()
        self._rounds += 1
        failed = [reason for name, text in texts.items() if (reason := self._write(name, text))]
        if failed:
            raise PlatformError(f"not published: {', '.join(failed)}")

    def read(self, pools: list[dict[str, Any]]) -> gpu_counts.Cluster:
        """All nodes, pods and gangs, reduced to what is counted. Raises ApiError."""
        asked, found = gpu_counts.resources(pools), gpu_counts.Cluster()
        for node in listed(self.api, "/api/v1/nodes", AT_ONCE):
            if parts := gpu_counts.nodes(node, pools):
                found.nodes[node["metadata"]["name"]] = parts
        for obj in listed(self.api, "/api/v1/pods", AT_ONCE):
            try:
                if pod := gpu_counts.pod(obj, asked):
                    found.pods.append(pod)
            except MALFORMED:  # one member's invalid object must not hide all others
                continue
        try:
            for obj in listed(self.api, PODGROUPS, AT_ONCE):
                try:
                    found.gangs.append(gpu_counts.gang(obj, asked))
                except MALFORMED:
                    continue
        except ApiError as error:
            if error.status != 404:  # a site without Volcano
                raise
        return found

    def _write(self, name: str, text: str) -> str:
        """Writes one text to its ConfigMap; "" or why not, from the second refusal on."""
        if self._written.get(name) == text:
            return ""
        try:
            path = f"/api/v1/namespaces/{self.api.namespace}/configmaps/{name}"
            self.api.merge(path, {"data": {KEY: text}}, manager=MANAGER)
        except ApiError as error:
            if error.status in (403, 404) and name not in self._awaited:
                self._awaited.add(name)
                return ""
            return f"{name} ({error.message})"
        self._awaited.discard(name)
        self._written[name] = text
        return ""


def run(contract_file: str, period: float) -> int:
    """Publishes every `period` seconds until told to stop; prints each error once and tries again."""
    view = View(Api())
    say(f"publishing the cluster's GPUs every {period:g} s")
    return rounds.run(lambda contract: view.look(contract, period), contract_file, period)
