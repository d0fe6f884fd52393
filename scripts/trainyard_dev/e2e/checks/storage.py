"""Buckets and shared volumes: one pod writes data and another reads it, on another node."""

import json

from trainyard.pipelines.local.dataset import FILES
from trainyard_dev.e2e import cronjobs, runs, store
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import DATA, FIRST, GPUS, STORAGE_CODE, VOLUMES, WAITS, check
from trainyard_dev.e2e.recorder import Figures, possible, require

EXAMPLE_S = 180


@check(DATA, main=True, rank=FIRST, inputs=STORAGE_CODE)
def bucket(context: Context) -> None:
    """The platform engineer's one command uploads the data set, and each file is complete."""
    dataset = context.dataset
    with context.recorder.check(
        "storage.bucket", f"one command uploads {dataset.name} to the bucket datasets, for all teams"
    ) as figures:
        sizes = {name: (dataset.folder / name).stat().st_size for name in FILES}
        said = runs.engineer(context, "data", "example", timeout=EXAMPLE_S).stdout
        require(said.strip() == "s3://datasets/shared/mnist", f"`trainyard data example` said {said!r}")
        with store.connect(context.kubectl, SYSTEM) as s3:
            found = s3.client.list_objects("datasets", "shared/mnist/", recursive=True)
            held = {(one.object_name or "").rpartition("/")[2]: one.size for one in found}
        require(held == sizes, f"the store has {held}, not {sizes}")
        figures |= {"data": dataset.name, "files": len(FILES), "bytes": sum(sizes.values())}


def claim(name: str, storage_class: str, size: str = "1Gi") -> dict:
    """A claim for a shared volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


@check("storage.dataset-cache", title="data set from the bucket to the shared volume", main=True, rank=WAITS,
       needs=(DATA,), inputs=STORAGE_CODE)  # fmt: skip
def fill_cache(context: Context, figures: Figures) -> None:
    """The platform copies the data set to the shared volume; a team's pod reads it there."""
    figures["copy"] = cronjobs.run(context, "trainyard-cache")[-400:]
    pod = context.pod("read-shared", "cd /shared/datasets/mnist; wc -c *", claims={"shared": "/shared"})
    phase, log = context.run_pod(pod)
    figures["seen_by_a_team"] = log
    lacking = [name for name in FILES if name not in log]
    require(phase == "Succeeded" and not lacking, f"a pod of {NAMESPACE} can't read {lacking}: {log}")


@check("storage.rwx", title="two users on two nodes write to a shared volume, which is archived on deletion", main=True,
       shares={GPUS, VOLUMES}, inputs=STORAGE_CODE)  # fmt: skip
def shared(context: Context, figures: Figures) -> None:
    """One volume, two nodes, two users: written here, appended there; archived when deleted."""
    name, mount = "rwx-check", {"rwx-check": "/v"}
    context.kubectl.apply([claim(name, context.shared_class, "64Mi")], NAMESPACE)
    write = "umask 002; echo one > /v/file; ls -lnd /v"
    phase, log = context.run_pod(context.pod("rwx-write", write, node=context.cpu_node, claims=mount))
    require(phase == "Succeeded", f"writing on {context.cpu_node} ended {phase}: {log}")
    figures["directory"] = log.splitlines()[-1]
    require("drwxrws---" in log, f"the volume's folder is not 2770 but {log.splitlines()[-1][:10]}")
    other = context.gpu_nodes[0]
    append = "echo two >> /v/file; cat /v/file"
    pod = context.pod("rwx-append", append, node=other, claims=mount, user=1001, queue=NAMESPACE)
    phase, log = context.run_pod(pod)
    require(
        phase == "Succeeded" and log.split() == ["one", "two"],
        f"reading and appending on {other} ended {phase}: {log}",
    )
    figures |= {
        "nodes": [context.cpu_node, other],
        "client": "userspace, NFSv3" if context.userspace_nfs else "kernel",
    }
    volume = context.kubectl.get("pvc", name, "-n", NAMESPACE)[0]["spec"]["volumeName"]
    context.kubectl("delete", "pvc", name, "-n", NAMESPACE, "--timeout=60s")
    context.kubectl("wait", f"pv/{volume}", "--for=delete", "--timeout=60s", check=False)
    require(context.kubectl.find("pv", volume) is None, f"the volume {volume} was not removed")
    figures["archived"] = _archived(context, volume)


@check("storage.csi", title="csi-driver-nfs from its upstream chart")
def csi(context: Context, _: Figures) -> None:
    """Skips the check, and reports which driver serves the volumes, and why."""
    installed = context.kubectl.find("csidriver", "nfs.csi.k8s.io")
    own = "csi-driver-nfs is installed, but this run uses our own provisioner"
    possible(False, own if installed else "the chart cannot be downloaded here; our own provisioner was used")


@check("storage.oversize", title="a pod that writes more than its claim requests is evicted; an event says why",
       shares={VOLUMES}, inputs=STORAGE_CODE)  # fmt: skip
def oversize(context: Context, figures: Figures) -> None:
    """The provisioner ends a pod that writes more than its claim requests, and the claim's events give the reason."""
    kubectl, name, pod = context.kubectl, "oversize-check", "oversize-write"
    kubectl.apply([claim(name, context.shared_class, "16Mi")], NAMESPACE)
    script = "head -c 64M /dev/zero > /v/file; sleep 300"
    kubectl.apply([context.pod(pod, script, claims={name: "/v"})], NAMESPACE)
    try:
        context.wait(f"pod/{pod}", "delete", 150, check=False)
        require(not kubectl.find("pod", pod, "-n", NAMESPACE), "the pod that wrote 64 MiB to 16 MiB still runs")
        which = f"--field-selector=involvedObject.name={name},reason=OverSize"
        said = [event["message"] for event in kubectl.get("events", "-n", NAMESPACE, which)]
        require(said, f"no event of claim {name} says why")
        figures["event"] = said[-1]
    finally:
        kubectl("delete", "pod", pod, "-n", NAMESPACE, "--now", "--ignore-not-found", "--wait=false", check=False)
        kubectl("delete", "pvc", name, "-n", NAMESPACE, "--wait=false", check=False)


def nfs_server(context: Context) -> str:
    """Name of the NFS server's pod."""
    label = "app.kubernetes.io/name=nfs,app.kubernetes.io/component=server"
    return context.kubectl.get("pods", "-n", SYSTEM, "-l", label)[0]["metadata"]["name"]


def _archived(context: Context, volume: str) -> str:
    """The folder on the server that archives a deleted volume."""
    server = nfs_server(context)
    found = context.kubectl(
        "exec", "-n", SYSTEM, server, "--", "find", "/export", "-maxdepth", "4", "-type", "d", "-name", f"*{volume}*"
    ).stdout.split()
    require(found, f"the server keeps no archive of {volume}")
    content = context.kubectl("exec", "-n", SYSTEM, server, "--", "cat", f"{found[0]}/file").stdout.split()
    require(content == ["one", "two"], f"the archive {found[0]} holds {json.dumps(content)}")
    return found[0]
