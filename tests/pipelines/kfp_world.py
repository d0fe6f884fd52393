"""An object of each kind for two teams, raw requests to the service behind kfp.Client, and what members may forge."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

from kfp_service import KfpService
from pipeline_harness import WORKFLOWS

from trainyard.times import now
from trainyard_dev.apiserver import Identity
from waiting import wait

API = "/apis/v2beta1"
MAPS = "/api/v1/namespaces/{}/configmaps"
NEVER = "CANARY"  # in whatever no answer may have
OWN = {"id": "own", "name": "own", "type": "Pod", "phase": "Succeeded", "startedAt": "2026-11-30T10:00:00Z",
       "finishedAt": "2026-11-30T10:01:00Z"}  # fmt: skip

SPEC = {"entrypoint": "main", "serviceAccountName": "pipeline", "activeDeadlineSeconds": 600, "suspend": True,
        "ttlStrategy": {"secondsAfterCompletion": 3600},
        "templates": [{"name": "main", "container": {"image": "site.invalid/x", "command": ["x"]}}]}  # fmt: skip


class World:
    """The service, and an object of each kind for the teams vision (ada's) and speech (sue's)."""

    def __init__(self, service: KfpService, spec: dict[str, Any]) -> None:
        self.service, self.server, self.spec = service, service.harness.server, spec
        self.of: dict[str, dict[str, str]] = {}
        for who, team in (("ada", "vision"), ("sue", "speech")):
            mark = "" if team == "vision" else NEVER
            experiment = self.ok(who, "POST", "/experiments", {"display_name": f"own {mark}"})["experiment_id"]
            pipeline = self.ok(who, "POST", "/pipelines", {"display_name": f"own {mark}"})["pipeline_id"]
            body = {"pipeline_spec": spec, "display_name": mark}
            version = self.ok(who, "POST", f"/pipelines/{pipeline}/versions", body)["pipeline_version_id"]
            body |= {"experiment_id": experiment, "trigger": {"cron_schedule": {"cron": "0 0 4 * * *"}}}
            run, recurring = self.ok(who, "POST", "/runs", body), self.ok(who, "POST", "/recurringruns", body)
            self.of[team] = {"experiments": experiment, "pipelines": pipeline, "version": version,
                             "runs": run["run_id"], "recurringruns": recurring["recurring_run_id"]}  # fmt: skip

    def ask(self, who: str, method: str, path: str, body: Any = b"", **headers: str) -> tuple[int, Any]:
        """The answer's status and JSON. Paths and headers are sent as they are."""
        sent = {"authorization": f"Bearer {self.service.tokens[who]}"} if who else {}
        connection = http.client.HTTPConnection(self.service.url.removeprefix("http://"), timeout=60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, API + path, data, {**sent, **{k.replace("_", "-"): v for k, v in headers.items()}})
        answer = connection.getresponse()
        found = answer.read().decode()
        connection.close()
        assert answer.status < 500 or answer.status == 501, (path, found)
        assert who in ("sue", "root") or NEVER not in found, (path, found)
        assert answer.status != 401 or answer.headers["www-authenticate"] == "Bearer"
        return answer.status, json.loads(found)

    def ok(self, who: str, method: str, path: str, body: Any = b"") -> Any:
        status, found = self.ask(who, method, path, body)
        assert status == 200, found
        return found

    def no(self, statuses: int | tuple[int, ...], words: str, *asked: Any, **headers: str) -> None:
        """Asks, and must be refused with these words."""
        status, found = self.ask(*asked, **headers)
        assert status in (statuses if isinstance(statuses, tuple) else (statuses,)), (asked, status, found)
        assert set(found) == {"error", "code", "message", "details"} and words in found["message"], (asked, found)

    def routes(self, team: str = "vision") -> Iterator[tuple[str, str]]:
        """Every route of one object of the team: method and path."""
        one = self.of[team]
        for kind in ("experiments", "pipelines", "runs", "recurringruns"):
            yield from (("GET", f"/{kind}/{one[kind]}"), ("DELETE", f"/{kind}/{one[kind]}"))
        yield from (("POST", f"/experiments/{one['experiments']}:{verb}") for verb in ("archive", "unarchive"))
        yield from (("POST", f"/runs/{one['runs']}:{v}") for v in ("archive", "unarchive", "terminate", "retry"))
        yield from (("POST", f"/recurringruns/{one['recurringruns']}:{verb}") for verb in ("enable", "disable"))
        versions = f"/pipelines/{one['pipelines']}/versions"
        yield from (("GET", versions), *((method, f"{versions}/{one['version']}") for method in ("GET", "DELETE")))

    def state(self) -> dict[str, Any]:
        """All that attacks could change."""
        kinds = (WORKFLOWS, WORKFLOWS.replace("workflows", "cronworkflows"), MAPS)
        found = [self.server.call("GET", kind.format(team)).body["items"] for kind in kinds for team in self.of]
        return {one["metadata"]["uid"]: (one["metadata"].get("labels"), one.get("data"), one["spec"].get("suspend")
                if "spec" in one else None) for items in found for one in items}  # fmt: skip

    def workflow(self, status: Any, meta: Any = None, **spec: Any) -> None:
        """A finished Workflow `own` of team vision, of any content: as where members may write what Argo writes."""
        path, argo = WORKFLOWS.format("vision"), "trainyard-workflow-controller-vision"
        self.server.call("DELETE", f"{path}/own")
        wait(lambda: self.server.call("GET", f"{path}/own").status == 404, "the end of own")
        labels = {"workflows.argoproj.io/completed": "true", "trainyard.io/pipeline": "own"}
        obj = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": SPEC | spec,
               "metadata": {"name": "own", "namespace": "vision", "labels": labels} | (meta or {}),
               "status": {"finishedAt": f"{now():%Y-%m-%dT%H:%M:%SZ}"} | status}  # fmt: skip
        answer = self.server.create(obj, identity=Identity.account(self.service.harness.controller.namespace, argo))
        assert answer.ok, answer.message

    def change(self, name: str, data: Any) -> None:
        """Changes a ConfigMap of team vision."""
        path = f"{MAPS.format('vision')}/{name}"
        assert self.server.call("PATCH", path, data, content="application/merge-patch+json").ok
