"""A team's own means, its S3 key and its pods, give no access to another team's data."""

import io
import time
from collections.abc import Callable
from typing import Any

from minio import Minio
from minio.error import S3Error

from trainyard_dev.e2e import store
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context, way
from trainyard_dev.e2e.entry import STORAGE_CODE, TORCH, check
from trainyard_dev.e2e.recorder import CheckError, Figures, require
from trainyard_dev.versions import load

VICTIM = f"{NAMESPACE}/attack/model.bin"


def _copy(s3: Minio) -> object:
    from minio.commonconfig import CopySource

    return s3.copy_object("runs", f"{OTHER}/copy", CopySource("runs", VICTIM))


def _write(s3: Minio, bucket: str, name: str) -> object:
    return s3.put_object(bucket, name, io.BytesIO(b"stolen"), 6)


# The attempts, by the end of the check's id.
ATTEMPTS: dict[str, tuple[str, Callable[[Minio], object]]] = {
    "list": (f"the names below runs/{NAMESPACE}/", lambda s3: list(s3.list_objects("runs", f"{NAMESPACE}/"))),
    "list-all": ("the names of the whole bucket", lambda s3: list(s3.list_objects("runs", recursive=True))),
    "read": (f"reading runs/{VICTIM}", lambda s3: s3.get_object("runs", VICTIM).close()),
    "write": (f"overwriting runs/{VICTIM}", lambda s3: _write(s3, "runs", VICTIM)),
    "delete": (f"deleting runs/{VICTIM}", lambda s3: s3.remove_object("runs", VICTIM)),
    "copy": (f"copying runs/{VICTIM} to the attacker's prefix", _copy),
    "raw": ("writing to raw-data", lambda s3: _write(s3, "raw-data", "x")),
    "shared": ("writing to datasets/shared/", lambda s3: _write(s3, "datasets", "shared/x")),
    "policy": ("making the bucket public", lambda s3: s3.set_bucket_policy("runs", "{}")),
}
PLACES = {
    "network-pod": f"a pod of {NAMESPACE}",
    "network-nfs": "the NFS server, without a mount",
    "network-api": "the API server",
}


@check(*(f"attack.bucket-{end}" for end in ATTEMPTS), main=("attack.bucket-read",), each=True, inputs=STORAGE_CODE)
def buckets(context: Context) -> None:
    """The S3 key of the team OTHER works below its own prefix and in no other team's."""
    with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as victim:
        victim.client.put_object("runs", VICTIM, io.BytesIO(b"weights"), 7)
    with store.connect(context.kubectl, SYSTEM, of=OTHER) as thief:
        thief.client.put_object("runs", f"{OTHER}/own", io.BytesIO(b"own"), 3)  # the key works in principle
        for end, (tried, attempt) in ATTEMPTS.items():
            if not context.wants(f"attack.bucket-{end}"):
                continue
            with context.recorder.check(f"attack.bucket-{end}", tried) as figures:
                figures |= {"who": f"the S3 key of {OTHER}", "tried": tried}
                try:
                    attempt(thief.client)
                except S3Error as error:
                    figures |= {"message": f"{error.code}: {error.message}", "refused_by": "object store"}
                    require(error.code == "AccessDenied", f"it failed for another reason: {error.code}")
                else:
                    raise CheckError("the request was allowed")
    with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as victim:
        require(victim.read("runs", VICTIM) == b"weights", f"runs/{VICTIM} differs from what {NAMESPACE} wrote")


@check("attack.volume-claim", title=f"a claim on the workspace of {NAMESPACE}", main=True, inputs=STORAGE_CODE)
def volume(context: Context, figures: Figures) -> None:
    """A claim that names the volume of another team's workspace never gets it."""
    bound = context.kubectl.get("pvc", "workspace", "-n", NAMESPACE)[0]
    name = bound["spec"]["volumeName"]
    figures |= {"who": f"a member of {OTHER}", "tried": f"a claim for the volume {name}"}
    claim: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "attack-claim"},
        "spec": {key: bound["spec"][key] for key in ("accessModes", "resources", "storageClassName")}
        | {"volumeName": name},
    }
    context.kubectl.apply([claim], OTHER)  # as an administrator: not even that may help
    try:
        time.sleep(5)
        seen = context.kubectl.get("pvc", "attack-claim", "-n", OTHER)[0]["status"]["phase"]
        require(seen != "Bound", f"the claim is {seen}")
        figures |= {"refused_by": "volume binding", "message": f"the claim stays {seen}: the volume is bound"}
    finally:
        context.kubectl("delete", "pvc", "attack-claim", "-n", OTHER, "--wait=false")


@check(*(f"attack.{end}" for end in PLACES), main=True, images=(TORCH,), inputs=("charts/trainyard/templates",))
def network(context: Context) -> None:
    """Pods of a team reach each other, and nothing of another team, of the API or of the NFS server."""
    image = load().image("trainer-torch")
    server = context.pod("attack-server", "cd /tmp; exec python3 -m http.server 8080", image=image)
    with context.holding(server):
        context.wait("pod/attack-server", "condition=Ready", 60)
        target = context.kubectl.get("pod", "attack-server", "-n", NAMESPACE)[0]["status"]["podIP"]
        nfs = context.kubectl.get("services", "-n", SYSTEM, "-l", "app.kubernetes.io/name=nfs")[0]["spec"]["clusterIP"]
        api = context.kubectl.get("service", "kubernetes", "-n", "default")[0]["spec"]["clusterIP"]
        places = [(target, 8080), (nfs, 2049), (api, 443)]
        script = "sleep 4\n" + "\n".join(way(host, port) for host, port in places)
        friend = context.pod("attack-friend", script, image=image)
        context.kubectl.apply([friend], NAMESPACE)  # both run at the same time
        seen = context.run_pod(context.pod("attack-client", script, image=image), namespace=OTHER)[1].split()
        friendly = context.run_pod(friend)[1].split()
        for (end, what), (host, port), answer in zip(PLACES.items(), places, seen, strict=True):
            address = f"{host}/{port}"
            with context.recorder.check(f"attack.{end}", f"a connection to {what}") as figures:
                figures |= {"who": f"a pod of {OTHER}", "tried": f"connecting to {address}"}
                figures |= {"refused_by": "network policy", "message": f"{address} is {answer}"}
                require(answer == "closed", f"the connection to {what} works")
                if end == "network-pod":
                    require(
                        friendly[0] == "open", f"not even a pod of {NAMESPACE} reaches it: the check proves nothing"
                    )
