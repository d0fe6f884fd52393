"""What kubelet and Argo's executor do with one pod of a workflow, done to processes on this machine: inputs from the
store, the main container's command with the real step program, outputs to the store, and the report."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from store import PASSWORD, USER, NotThereError, Store

from trainyard_dev import tools
from trainyard_dev.apiserver import Client, Identity

STEP = "/var/run/argo/trainyard-step"
SCRIPT = "/argo/staging/script"
RESULTS = "/apis/argoproj.io/v1alpha1/namespaces/{}/workflowtaskresults"
MERGE = "application/merge-patch+json"
REPORTED = "workflows.argoproj.io/report-outputs-completed"
KEYS = {"access-key": USER, "secret-key": PASSWORD}


class ContainerError(Exception):
    """A container ended with a code other than 0."""

    def __init__(self, container: str, code: int, message: str) -> None:
        super().__init__(message)
        self.container, self.code, self.message = container, code, message


@dataclass
class PodLife:
    """One pod from its creation to its end; everything of it lies in `root`."""

    pod: dict[str, Any]
    client: Client
    store: Store
    faults: list[str]  # "upload": the executor can't store outputs; "evicted": the pod is thrown off its node
    kubeconfig: Path  # of the server's administrator
    root: Path
    process: subprocess.Popen[bytes] | None = None
    stopping: int = 0

    def __post_init__(self) -> None:
        meta = self.pod["metadata"]
        self.namespace, self.name = meta["namespace"], meta["name"]
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.account = Identity.account(self.namespace, self.pod["spec"]["serviceAccountName"])
        self.environments = {
            one["name"]: one.get("env", [])
            for one in [*self.pod["spec"]["initContainers"], *self.pod["spec"]["containers"]]
        }
        self.node = next(one["value"] for one in self.environments["init"] if one["name"] == "ARGO_NODE_ID")
        # One, but for a set of containers.
        self.mains = [one["name"] for one in self.pod["spec"]["containers"] if one["name"] != "wait"]
        self.template = self._template()
        self.statuses: dict[str, dict[str, Any]] = {}

    def live(self) -> None:
        """All of it. What goes wrong becomes the pod's phase, as in a cluster."""
        try:
            self._init()
            self._say("Running")
            self._main()
            if "evicted" in self.faults:
                return self._say("Failed", reason="Evicted", message="The node was low on resource: memory.")
            self._report()
        except ContainerError as error:
            self._ended(error.container, error.code, error.message)
        failed = any(status["terminated"]["exitCode"] for status in self.statuses.values())
        return self._say("Failed" if failed else "Succeeded")

    def send(self, number: int) -> None:
        """A signal for the main container's command, as `argoexec kill` sends it."""
        self.stopping = number
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    @property
    def log(self) -> str:
        """What the main container has written."""
        return (self.root / "main.log").read_text(errors="replace")

    def _init(self) -> None:
        for folder in ("kfp", "dev", "tmp", "var/run/argo"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "dev/termination-log").touch()
        (self.root / "main.log").touch()
        (self.root / "var/run/argo/template").write_text(json.dumps(self.template))
        if "script" in self.template:
            (self.root / "argo/staging").mkdir(parents=True)
            (self.root / "argo/staging/script").write_text(self.template["script"]["source"])
        for artifact in self.template.get("inputs", {}).get("artifacts", []):
            self._load(artifact)
        self._ended("init", 0)
        for container in self.pod["spec"]["initContainers"]:
            if container["name"] != "init":
                code = self._run(container)
                if code:
                    raise ContainerError(container["name"], code, self._message())
                self._ended(container["name"], 0)

    def _load(self, artifact: dict[str, Any]) -> None:
        place = artifact.get("s3", {})
        if "raw" in artifact:
            target = self.root / artifact["path"].lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(artifact["raw"]["data"])
            return
        if not place.get("key"):
            if artifact.get("optional"):
                return
            raise ContainerError("init", 64, f"required artifact '{artifact['name']}' not supplied")
        bucket = place.get("bucket") or self.template["archiveLocation"]["s3"]["bucket"]
        target = self.root / artifact["path"].lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.store.load(bucket, place["key"], target)
            if target.is_file() and tarfile.is_tarfile(target):  # as the executor: by what it is, not by its name
                _unpack(target)
        except NotThereError as error:
            if not artifact.get("optional"):
                raise ContainerError("init", 64, f"artifact {artifact['name']} failed to load: {error}") from None

    def _main(self) -> None:
        """The main container; of a set each when those that it needs have ended well, as the executor lets them."""
        group = {one["name"]: one for one in self.template.get("containerSet", {}).get("containers", [])}
        left = [one for one in self.pod["spec"]["containers"] if one["name"] in self.mains]
        while left:
            main = next(
                one for one in left if set(group.get(one["name"], {}).get("dependencies", [])) <= self.statuses.keys()
            )
            left.remove(main)
            words = main["command"]
            assert words[:2] == ["/var/run/argo/argoexec", "emissary"], words
            code = self._run(main | {"command": words[words.index("--") + 1 :]})
            self._ended(main["name"], code, self._message() if code else "")
            if code:
                for one in left:
                    self._ended(one["name"], 1, "a container before it failed")
                return

    def _run(self, container: dict[str, Any]) -> int:
        words = [*container["command"], *container.get("args", [])]
        words[0] = str(tools.binary("trainyard-step")) if words[0] == STEP else words[0]
        words = [str(self.root / SCRIPT.lstrip("/")) if word == SCRIPT else word for word in words]
        given = {one["name"]: self._value(one) for one in container.get("env", [])}
        own = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOSTNAME": self.name,
            **dict.fromkeys(("HOME", "TMPDIR"), str(self.root / "tmp")),
            "TRAINYARD_ROOT": str(self.root), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        there = Path("/dev/termination-log").exists()
        if words[0] == "argoexec":  # a resource template: the executor itself, as the step's account
            words[0] = str(tools.binary("argoexec"))
            own |= {"KUBECONFIG": str(self._account_config()), "ARGO_TEMPLATE": json.dumps(self.template)}
            own["RESOURCE_STATE_CHECK_INTERVAL"] = "500ms"
        if self.stopping:
            return 128 + self.stopping
        with (self.root / "main.log").open("ab") as log:
            self.process = subprocess.Popen(
                words, env=given | own, cwd=self.root / "tmp", stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        code = self.process.wait()
        _end_session(self.process.pid)
        if "KUBECONFIG" in own:
            for left in (Path("/tmp/manifest.yaml"), *([] if there else [Path("/dev/termination-log")])):
                left.unlink(missing_ok=True)  # the executor's own places, which nothing moves
        return code if code >= 0 else 128 - code

    def _report(self) -> None:
        """What Argo's container `wait` does."""
        declared, outputs = self.template.get("outputs", {}), {}
        body: dict[str, Any] = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult"}
        body["metadata"] = {
            "name": self.node,
            "labels": {
                "workflows.argoproj.io/workflow": self.pod["metadata"]["labels"]["workflows.argoproj.io/workflow"],
                REPORTED: "false",
            },
        }
        problem = ""
        parameters = []
        itself = "resource" in self.template  # its executor has reported already
        for parameter in [] if itself else declared.get("parameters", []):
            file = self.root / parameter["valueFrom"]["path"].lstrip("/")
            if file.exists():
                parameters.append(parameter | {"value": file.read_text().removesuffix("\n")})
            elif "default" in parameter["valueFrom"]:
                parameters.append(parameter | {"value": parameter["valueFrom"]["default"]})
            else:
                problem = f"open {parameter['valueFrom']['path']}: no such file or directory"
        if "upload" in self.faults:
            problem, artifacts = "failed to put file: connection refused", []
        else:
            artifacts = [saved for one in declared.get("artifacts", []) if (saved := self._save(one))]
        asked = {"name": "ARGO_INCLUDE_SCRIPT_OUTPUT", "value": "true"} in self.environments[self.mains[-1]]
        result = {"result": self.log.rstrip("\n")} if asked else {}
        if parameters or artifacts or result:
            outputs = {"outputs": {"parameters": parameters, "artifacts": artifacts, **result}}
        path = RESULTS.format(self.namespace)
        if not itself:
            answer = self.client.call("POST", path, body | outputs, identity=self.account)
            assert answer.ok, answer.message
        done = {"metadata": {"labels": {REPORTED: "true"}}}
        answer = self.client.call("PATCH", f"{path}/{self.node}", done, content=MERGE, identity=self.account)
        assert answer.ok, answer.message
        self._ended("wait", 64 if problem else 0, problem)

    def _save(self, artifact: dict[str, Any]) -> dict[str, Any] | None:
        source = self.root / artifact["path"].lstrip("/")
        if not source.exists():
            return None
        archived = "none" not in artifact.get("archive", {})
        base = self.template["archiveLocation"]["s3"]["key"]
        key = artifact.get("s3", {}).get("key") or f"{base}/{artifact['name'] + '.tgz' if archived else source.name}"
        self.store.save(source, key, archived=archived)
        return artifact | {"s3": {"key": key}}

    def _template(self) -> dict[str, Any]:
        text = next(one["value"] for one in self.environments["init"] if one["name"] == "ARGO_TEMPLATE")
        if text == "offloaded":
            found = self.client.call("GET", f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}")
            text = found.body["data"]["ARGO_TEMPLATE"]
        template = json.loads(text)
        if "s3" in template.get("archiveLocation", {}):
            template["archiveLocation"]["s3"] |= {"endpoint": self.store.endpoint, "insecure": True}
        return template

    def _value(self, variable: dict[str, Any]) -> str:
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            return KEYS.get(source["secretKeyRef"]["key"], "")
        if "fieldRef" in source:
            found: Any = self.pod
            for part in source["fieldRef"]["fieldPath"].split("."):
                found = found[part]
            return str(found)
        return variable.get("value", "")

    def _account_config(self) -> Path:
        """How a program of the pod reaches the server: as the pod's account, in its namespace."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] |= {"as": self.account.user, "as-groups": list(self.account.groups)}
        config["contexts"][0]["context"]["namespace"] = self.namespace
        path = self.root / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def _message(self) -> str:
        return (self.root / "dev/termination-log").read_text(errors="replace")

    def _ended(self, container: str, code: int, message: str = "") -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message, "finishedAt": now}
        self.statuses[container] = {"terminated": ended}

    def _say(self, phase: str, **more: str) -> None:
        inits = [one["name"] for one in self.pod["spec"]["initContainers"]]
        status: dict[str, Any] = {"phase": phase, **more}
        for key, names in (("initContainerStatuses", inits), ("containerStatuses", [*self.mains, "wait"])):
            status[key] = [
                {"name": name, "ready": False, "restartCount": 0, "image": "", "imageID": "",
                 "state": self.statuses.get(name, {"running": {}})}
                for name in names if phase == "Running" or name in self.statuses
            ]  # fmt: skip
        with suppress(Exception):  # the pod may be gone
            self.client.call("PATCH", f"{self.path}/status", {"status": status}, content=MERGE)

    def kill(self) -> None:
        """Ends what still runs of it."""
        if self.process and self.process.poll() is None:
            self.process.kill()


def _end_session(leader: int) -> None:
    """What a container's first process leaves ends with it; a step's command has a process group of its own."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(file.parent.name), signal.SIGKILL)


def _unpack(target: Path) -> None:
    """What an archive holds, in its place."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, tarfile.open(target) as archive:
        archive.extractall(folder, filter="data")
        target.unlink()
        next(Path(folder).iterdir()).rename(target)
