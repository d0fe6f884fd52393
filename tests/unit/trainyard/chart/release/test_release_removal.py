"""What stays after an uninstallation, and the order in which a purge removes it."""

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.chart.release import inventory, removal
from trainyard.commands import uninstall as cli
from trainyard.errors import TrainyardError

KEPT = {"meta.helm.sh/release-name": "trainyard", "helm.sh/resource-policy": "keep"}
GOES = {"meta.helm.sh/release-name": "trainyard"}
MADE = {"pv.kubernetes.io/provisioned-by": "trainyard.io/nfs"}


def thing(kind: str, name: str, space: str = "", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "annotations": more.pop("annotations", {}), "labels": more.pop("labels", {})}
    return {"kind": kind, "metadata": meta | ({"namespace": space} if space else {}), **more}


def volume(name: str, space: str, claim: str, phase: str = "Bound", **more: Any) -> dict[str, Any]:
    ref, nfs = {"namespace": space, "name": claim}, {"server": "10.0.0.1", "path": f"/{name}"}
    spec = {"capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain", "claimRef": ref, "nfs": nfs}
    return thing("PersistentVolume", name, spec=spec, status={"phase": phase}, **more)


def claim(space: str, name: str, volume: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    return thing("PersistentVolumeClaim", name, space, spec=spec)


def pod(name: str, claim: str, job: str = "") -> dict[str, Any]:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "controller": True}] if job else []
    made = thing("Pod", name, "lab", spec={"volumes": [{"persistentVolumeClaim": {"claimName": claim}}]})
    made["metadata"]["ownerReferences"] = owners
    return made | {"status": {"phase": "Succeeded" if job else "Running"}}


class Cluster:
    """Answers like kubectl and helm and notes what was asked to change."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.installed = True
        self.lists = {
            "validatingadmissionpolicybindings": [thing("Binding", "ours", annotations=GOES), thing("Binding", "site")],
            "namespaces": [thing("Namespace", "vision")],
            "pv": [
                volume("work", "vision", "workspace", annotations=MADE),
                volume("plain", "lab", "scratch", annotations=MADE),
                volume("static", "vision", "shared", annotations=KEPT),
                volume("foreign", "lab", "other"),
                volume("view", "trainyard-system", "view", annotations=GOES),
            ],
            "pvc": [
                claim("vision", "workspace", "work"),
                claim("lab", "scratch", "plain"),
                claim("lab", "other", "foreign"),
                claim("trainyard-system", "data", "disk"),
                claim("trainyard-system", "view", "view")
                | {"metadata": {"name": "view", "namespace": "trainyard-system", "annotations": GOES}},
            ],
            "secrets": [
                thing("Secret", "kept", annotations=KEPT),
                thing("Secret", "site"),
                thing("Secret", "goes", annotations=GOES),
            ],
            "crd": [
                thing("CRD", "queues.scheduling.volcano.sh", annotations=KEPT),
                thing("CRD", "others.example.org"),
                thing("CRD", "tfjobs.kubeflow.org"),
                thing("CRD", "mpijobs.kubeflow.org"),
                thing("CRD", "pytorchjobs.kubeflow.org", annotations={"trainyard.io/crd-version": "1"}),
            ],
            "pods": [pod("backup-1", "scratch", "backup"), pod("alone", "scratch"), pod("else", "foreign")],
            "pytorchjobs.kubeflow.org": [thing("PyTorchJob", "runs", "vision", status={})],
        }

    def get(self, kind: str, *args: str) -> list[dict[str, Any]]:
        if kind == "crd" and "--show-managed-fields" in args:  # kubectl leaves them out otherwise
            found = [copy.deepcopy(item) for item in self.lists[kind]]
            managers = {"mpijobs.kubeflow.org": "helm", "tfjobs.kubeflow.org": "kubectl-client-side-apply"}
            for item in found:
                item["metadata"]["managedFields"] = [{"manager": managers.get(item["metadata"]["name"], "x")}]
            return found
        return self.lists.get(kind, [])

    def find(self, *args: str) -> dict[str, Any] | None:
        return None

    def __call__(self, *args: str, **options: Any) -> SimpleNamespace:
        if args[0] in ("delete", "patch"):
            self.done.append(" ".join(arg for arg in args[:5] if not arg.startswith("--")))
        if args[0] == "wait":
            self.done.append(f"wait {args[1]}")
        return SimpleNamespace(stdout="")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    cluster = Cluster()

    def helm(*args: Any, **_: Any) -> str:
        if args[0] == "list":
            return json.dumps([{"name": "trainyard"}] if cluster.installed else [])
        cluster.done.append("helm " + " ".join(args[:2]))
        return 'release "trainyard" uninstalled\n'

    return SimpleNamespace(kubectl=cluster, name="trainyard", namespace="trainyard-system", helm=helm)


def test_what_stays_is_ours_and_nobody_else_s(installed: Any) -> None:
    found = inventory.remains(installed)
    assert found.teams == ["vision"]
    assert [str(one) for one in found.claims] == [
        "claim vision/workspace, 1Gi", "claim lab/scratch, 1Gi", "claim trainyard-system/data, 1Gi"]  # fmt: skip
    assert [one.name for one in found.volumes] == ["plain", "static", "work"]
    assert found.secrets == ["kept"]
    assert found.crds == ["mpijobs.kubeflow.org", "pytorchjobs.kubeflow.org", "queues.scheduling.volcano.sh"]
    assert "volume work, 1Gi, Retain, 10.0.0.1:/work" in found.lines()


def test_a_purge_removes_files_before_the_provisioner_goes(installed: Any) -> None:
    said: list[str] = []
    removal.purge(installed, said.append)
    done = installed.kubectl.done
    order = ["delete validatingadmissionpolicybinding ours",
             "delete pytorchjobs.kubeflow.org runs -n vision", "patch pv work merge", "delete namespace vision",
             "wait namespace/vision", "delete job.batch backup -n lab",
             "delete pod alone -n lab", "delete pvc scratch -n lab", "wait pvc/scratch", "wait pv/work",
             "helm uninstall trainyard",
             "delete pv static", "delete secret kept -n trainyard-system", "delete crd queues.scheduling.volcano.sh",
             "wait crd/pytorchjobs.kubeflow.org"]  # fmt: skip
    assert [done.index(step) for step in order] == sorted(done.index(step) for step in order)
    assert not any("other" in step or "site" in step or "foreign" in step for step in done)
    assert "files of volume work go with it (10.0.0.1:/work)" in said


def test_a_purge_can_be_taken_up_again(installed: Any) -> None:
    installed.kubectl.installed = False
    removal.purge(installed, lambda line: None)
    assert not any(step.startswith(("helm", "patch")) for step in installed.kubectl.done)
    assert "delete crd queues.scheduling.volcano.sh" in installed.kubectl.done


def test_what_holds_an_object_is_reported(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held = thing("Namespace", "vision", status={"conditions": [{"status": "True", "message": "pods are left"}]})
    monkeypatch.setattr(installed.kubectl, "find", lambda kind, *_: held if kind == "namespace" else None)
    with pytest.raises(TrainyardError, match="namespace vision still exists after 180 s: pods are left"):
        removal.purge(installed, lambda line: None)


@pytest.fixture
def command(installed: Any, monkeypatch: pytest.MonkeyPatch, trainyard: Any) -> Any:
    monkeypatch.setattr(cli, "Installed", lambda *args: installed)
    return lambda *words: trainyard("uninstall", *words)


def test_a_dry_run_only_says(command: Any, installed: Any) -> None:
    ended = command("--dry-run", "--purge")
    assert ended.code == 0
    assert "would remove release trainyard in trainyard-system\nalso removed:\n  namespace vision" in ended.out
    assert installed.kubectl.done == []


def test_the_default_leaves_data_alone(command: Any, installed: Any) -> None:
    assert "kept:\n  namespace vision" in command().out
    assert installed.kubectl.done == ["helm uninstall trainyard"]


def test_a_purge_asks_for_the_name(command: Any, installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.prompt", lambda *args, **options: "yes")
    assert "the name does not match the release" in command("--purge").error()
    assert installed.kubectl.done == []
    assert command("--purge", "--yes").code == 0
    assert "delete namespace vision" in installed.kubectl.done


def test_a_release_that_is_not_there_is_wrong_usage(command: Any, installed: Any) -> None:
    installed.kubectl.installed = False
    assert command().code == 2
