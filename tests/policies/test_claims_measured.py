"""The real provisioner with its own rights: who writes more than a claim asks for is stopped, and what is kept counts.

A folder stands for the NFS export; claims, volumes and quotas are Kubernetes' own controllers'.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer, Identity, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench.harness import token
from trainyard_dev.chart import package
from trainyard_dev.policy.cases import bases, changed
from waiting import wait

SYSTEM, TEAM, ACCOUNT = "trainyard-system", "store", "trainyard-nfs-provisioner"
MEMBER = Identity("ada", (f"{TEAM}-members",))
MIB = 1024 * 1024
WAIT_S = 60.0  # the machine may be busy
CONTROLLERS = (
    "persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller", "resourcequota-controller",
)  # fmt: skip
VALUES = {"global": {"contract": {
    "storage": {"sharedVolume": {"size": "16Mi"}},
    "teams": [{"name": TEAM, "gid": 20009, "members": {"groups": list(MEMBER.groups)},
               "storage": {"workspace": "16Mi", "maxClaim": "200Mi", "total": "390Mi"}}],
}}}  # fmt: skip

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders to groups")]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, export: Path) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("claims")
    (folder / "values.yaml").write_text(yaml.safe_dump(VALUES))
    with running(audit=False) as server:
        install(server, package.render("kind", values=[folder / "values.yaml"]))
        config = yaml.safe_load(server.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token(server, SYSTEM, ACCOUNT, "the provisioner has no token")}
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        [health] = free_ports(1)
        with server.controllers(CONTROLLERS):
            provisioner = Server(
                [tools.binary("nfs-provisioner"), "-server=10.96.0.49", "-export=/shared", f"-directory={export}",
                 f"-health-address=127.0.0.1:{health}", "-measure-every=1s", f"-kubeconfig={folder / 'kubeconfig'}",
                 f"-lease-namespace={SYSTEM}"],
                folder / "provisioner.log",
            )  # fmt: skip
            try:
                yield server
            finally:
                provisioner.stop()
                print((folder / "provisioner.log").read_text()[-4000:])  # shown with a failure


def claim(server: ApiServer, name: str, size: str) -> None:
    changes = {"/metadata/namespace": TEAM, "/metadata/name": name, "/spec/resources/requests/storage": size}
    made = server.create(changed(bases()["claim"], changes), identity=MEMBER)
    assert made.ok, made.message


def state(server: ApiServer, kind: str, name: str) -> dict[str, Any] | None:
    return server.find({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": TEAM}}, name)


def bound(server: ApiServer, name: str) -> None:
    wait(
        lambda: (state(server, "PersistentVolumeClaim", name) or {})["status"]["phase"] == "Bound",
        f"{name} bound",
        WAIT_S,
    )


def pod(server: ApiServer, name: str, claim: str) -> None:
    """A pod that has the claim; without a node it goes at once when it is deleted."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    changes = {"/metadata/namespace": TEAM, "/metadata/name": name, "/spec/volumes": [volume]}
    made = server.create(changed(bases()["cpu-pod"], changes), identity=MEMBER)
    assert made.ok, made.message


def said(server: ApiServer, name: str, reason: str) -> str:
    """The message of the claim's event with this reason, as its member reads it."""

    def look() -> str:
        events = server.call("GET", f"/api/v1/namespaces/{TEAM}/events", identity=MEMBER).body["items"]
        found = [one["message"] for one in events if (one["involvedObject"]["name"], one["reason"]) == (name, reason)]
        return found[-1] if found else ""

    return str(wait(look, f"an event {reason} of {name}", WAIT_S))


def fill(folder: Path, size: int) -> None:
    (folder / f"file-{size}").write_bytes(b"x" * size * MIB)


def gone(server: ApiServer, kind: str, name: str) -> None:
    wait(lambda: state(server, kind, name) is None, f"the end of {kind} {name}", WAIT_S)


def test_a_writer_beyond_its_claim_is_stopped_and_finds_a_way_back(platform: ApiServer, export: Path) -> None:
    claim(platform, "data", "100Mi")
    bound(platform, "data")
    pod(platform, "writer", "data")
    pod(platform, "bystander", "workspace")
    fill(export / TEAM / "data", 130)
    gone(platform, "Pod", "writer")
    assert "holds 130 MiB, and asks for 100 MiB: 1 pods that have it were ended" in said(platform, "data", "OverSize")
    # It starts again, as a job's pods do, and writes on.
    pod(platform, "again", "data")
    fill(export / TEAM / "data", 50)
    gone(platform, "Pod", "again")
    assert "it is closed" in said(platform, "data", "Closed")
    assert (export / TEAM / "data").stat().st_mode & 0o777 == 0o700
    assert state(platform, "Pod", "bystander"), "a pod of another claim was ended"
    # Raised by the member, within the team's quota, it opens.
    held = state(platform, "PersistentVolumeClaim", "data")
    assert held
    sizes = {"300Mi": "maximum storage usage per PersistentVolumeClaim is 200Mi", "200Mi": ""}
    for size, refusal in sizes.items():
        change = [{"op": "replace", "path": "/spec/resources/requests/storage", "value": size}]
        answer = platform.patch(held, change, identity=MEMBER)
        assert answer.ok == (not refusal), answer.message
        assert refusal in answer.message
    assert "within its 200 MiB again" in said(platform, "data", "WithinSize")
    assert (export / TEAM / "data").stat().st_mode & 0o2777 == 0o2770


def test_files_of_a_deleted_claim_count_until_they_are_removed(platform: ApiServer, export: Path) -> None:
    path = f"/api/v1/namespaces/{TEAM}/persistentvolumeclaims"
    assert platform.call("DELETE", f"{path}/data", identity=MEMBER).ok
    [archive] = wait(lambda: [*export.glob("archived/store-data-pvc-*")], "the archive", WAIT_S)
    gone(platform, "PersistentVolumeClaim", "data")
    claim(platform, "next", "200Mi")
    refusal = said(platform, "next", "ProvisioningFailed")
    assert "claims of store ask for 217 MiB and 180 MiB of deleted claims are kept" in refusal
    assert "more than its 390Mi together: delete claims, or have an administrator remove what is kept" in refusal
    assert platform.call("DELETE", f"{path}/next", identity=MEMBER).ok
    gone(platform, "PersistentVolumeClaim", "next")
    shutil.rmtree(archive)
    claim(platform, "third", "200Mi")
    bound(platform, "third")


def test_the_workspace_is_not_raised_past_the_values(platform: ApiServer) -> None:
    """Helm would have to lower it again, which Kubernetes refuses, and with it every upgrade."""
    bound(platform, "workspace")
    held = state(platform, "PersistentVolumeClaim", "workspace")
    assert held
    change = [{"op": "replace", "path": "/spec/resources/requests/storage", "value": "32Mi"}]
    answer = platform.patch(held, change, identity=MEMBER)
    assert answer.status == 403 and "storageclass that provisions the pvc must support resize" in answer.message
