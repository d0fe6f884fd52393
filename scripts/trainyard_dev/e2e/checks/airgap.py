"""Nodes without egress: an installation from a mirror, and a training job on it."""

import socketserver
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev.chart import images as listing
from trainyard_dev.e2e import jobs, options
from trainyard_dev.e2e.checks import monitoring, options_kept, uninstall
from trainyard_dev.e2e.checks.training import KINDS, TIMEOUT_S, manifest
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, APART, DATA, KFP_IMAGES, RELEASE_CODE, TORCH, check
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import put, values
from trainyard_dev.e2e.sites import egress
from trainyard_dev.images import crane, registry
from trainyard_dev.mirror import pinned, sources
from trainyard_dev.versions import load

# The mirror's name at a site; no server answers there, so an image that the mirror lacks can't come from elsewhere.
MIRROR = "registry.example.org/mirror"
PROBE = "trainyard-airgap"  # a namespace without policies, and the pod in it
TITLES = {
    "airgap.denied": "nodes and pods reach only the cluster and its registry",
    "airgap.install": "one helm upgrade from a mirror, with all options and TLS in the store",
    "airgap.train": "a training job from the mirror, with all egress denied",
}
SENT = "sum(otelcol_exporter_sent_log_records)"  # lines that the store has accepted
ELSEWHERE = "trying next host"  # containerd's message if the cluster's registry lacks an image


@check(*TITLES, *uninstall.TITLES, parts=(tuple(TITLES), tuple(uninstall.TITLES)), needs=(DATA,),
       after=("rights.no-forbidden",), locks={ALONE, APART},
       images=(TORCH, *options.IMAGES, *options.OFFERED, *KFP_IMAGES, "dex", "notebook-hub", "notebook"),
       inputs=(*RELEASE_CODE, "scripts/trainyard_dev/images", "charts/login", "charts/notebooks", "charts/serving"),
)  # fmt: skip
def without_egress(context: Context) -> None:
    """Cuts the nodes off: moves to a mirror, trains, uninstalls, installs from the mirror, purges."""
    cut = any(map(context.wants, TITLES))
    if cut:
        deny_egress(context)
    try:
        if cut:
            installed(context)
        if any(map(context.wants, uninstall.TITLES)):
            uninstall.uninstalled(context)
    finally:
        if cut:
            allow_egress(context)


def deny_egress(context: Context) -> None:
    """Cuts every node off, and proves it with a listener that nodes and pods reach before but not after."""
    nodes = [node.name for node in context.nodes]
    with (
        context.recorder.check("airgap.denied", TITLES["airgap.denied"]) as figures,
        _listener() as port,
        _probe(context),
    ):
        outside = (egress.gateway(context.engine), port)
        figures["before"] = _reached(context, nodes, outside)
        require(set(figures["before"].values()) == {"open"}, f"the listener is unreachable: {figures['before']}")
        egress.cut(context.engine, nodes)
        figures["after"] = _reached(context, nodes, outside)
        require(set(figures["after"].values()) == {"closed"}, f"nodes or pods still reach outside: {figures['after']}")
        figures["packets_dropped"] = egress.dropped(context.engine, nodes)
        require(figures["packets_dropped"]["other"] > 0, "no packet was dropped")
        within = _reached(context, nodes, (registry.NAME, registry.PORT), pod=False)
        require(set(within.values()) == {"open"}, f"the registry is no longer reachable: {within}")


@contextmanager
def _values(context: Context) -> Iterator[list[Path]]:
    """The run's values with the mirror and all options, and without this run's stand-ins of upstream's images."""
    change = {
        "global": {"imageRegistry": MIRROR},
        "minio": {"tls": {"enabled": True}},
        "policies": {"fill": {"images": None}},
    }
    with values(context) as files, tempfile.TemporaryDirectory(prefix="airgap-") as folder:
        for name, one in (("options", options_kept.VALUES), ("mirror", change)):
            files.append(Path(folder) / f"{name}.yaml")
            files[-1].write_text(yaml.safe_dump(one))
        yield files


def installed(context: Context) -> None:
    """Mirrors every image under a prefix, installs from there, and trains; egress must have been denied before."""
    if context.recorder.failed("airgap.denied"):
        context.recorder.skip_all(dict(list(TITLES.items())[1:]), "the nodes were not cut off")
        return
    nodes = [node.name for node in context.nodes]
    since = int(time.time())
    with context.recorder.check("airgap.install", TITLES["airgap.install"]) as figures:
        pushed = _mirror(context)
        figures["images"] = len(pushed)
        before = egress.dropped(context.engine, nodes)["web"]
        with _values(context) as files:
            files.append(files[-1].with_name("pins.yaml"))
            files[-1].write_text(pinned.text(pushed, MIRROR))
            figures["seconds"] = put(context, "upgrade", files)
        figures["object_store"] = context.contract["s3"]["endpoint"]
        require(figures["object_store"].startswith("https://"), f"the object store is {figures['object_store']}")
        strangers = _strangers(context, SYSTEM)
        require(not strangers, f"images that are not from the mirror: {', '.join(strangers)}")
        with monitoring.prometheus(context) as port:
            figures["targets"] = monitoring.all_up(port, monitoring.due(context.gpu, "login"))
            figures["lines_kept"] = monitoring.number(port, SENT)
        _nothing_left(context, nodes, since, before, figures)
    if context.recorder.failed("airgap.install"):
        context.recorder.skip("airgap.train", TITLES["airgap.train"], "the installation failed")
        return
    with context.recorder.check("airgap.train", TITLES["airgap.train"]) as figures:
        job = manifest(KINDS[0], context.dataset)  # as it stands: admission puts the mirror's image there
        try:
            trace = jobs.follow(context, job, NAMESPACE, "airgap.train", TIMEOUT_S)
            used = {image for pod in trace.pods.values() for image in images_of(pod)}
            figures["images"] = sorted(used)
            require(used, "the job had no pod")
            require(
                any(f"{MIRROR}/trainyard/trainer-torch@sha256:" in image for image in used), f"by tag: {sorted(used)}"
            )
            require(all(image.startswith(MIRROR) for image in used), f"not from the mirror: {sorted(used)}")
            _nothing_left(context, nodes, since, before, figures)
        finally:
            jobs.delete(context, job, NAMESPACE)


def allow_egress(context: Context) -> None:
    """Removes the rules; the release stays on the mirror, which the cluster's registry continues to serve."""
    egress.rejoin(context.engine, [node.name for node in context.nodes])


def images_of(pod: dict[str, Any]) -> list[str]:
    """Images of all containers of a pod, including those that operators added."""
    spec = pod["spec"]
    return [container["image"] for container in [*spec.get("initContainers", []), *spec["containers"]]]


def _mirror(context: Context) -> dict[str, str]:
    """Copies the profile's images, and that of the checks' own pods, into the registry under the mirror's path.

    Returns:
        each reference of the mirror, and its digest.
    """
    with _values(context) as files:
        refs = [*(image.ref for image in listing.listed("kind", values=[files[-2]])), load().image("base")]
    address = registry.address(context.engine)
    path = MIRROR.partition("/")[2]
    wanted = context.supply.source.kind if context.supply else "auto"
    pushed = crane.mirror(sources.items(context.engine, refs, wanted), f"{address}/{path}")
    return {ref.replace(f"{address}/{path}", MIRROR, 1): digest for ref, digest in pushed.items()}


def _strangers(context: Context, namespace: str) -> list[str]:
    """Images of running pods that don't come from the mirror."""
    found = {
        image
        for pod in context.kubectl.get("pods", "-n", namespace)
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for image in images_of(pod)
    }
    return sorted(image for image in found if not image.startswith(f"{MIRROR}/"))


def _nothing_left(context: Context, nodes: list[str], since: int, before: int, figures: dict[str, Any]) -> None:
    """Checks that no node tried another registry, by containerd's log and by the rules' packet counts."""
    figures["connections_to_other_registries"] = egress.dropped(context.engine, nodes)["web"] - before
    lines = []
    for node in nodes:
        argv = ["journalctl", "-u", "containerd", "--no-pager", "-o", "cat", "--since", f"@{since}"]
        log = context.engine.exec(node, argv, check=False).stdout
        lines += [f"{node}: {line[:200]}" for line in log.splitlines() if ELSEWHERE in line]
    require(not lines, f"a node tried to pull from elsewhere: {' | '.join(lines[:3])}")
    count = figures["connections_to_other_registries"]
    require(count == 0, f"{count} packets to ports 80 and 443 outside the cluster were dropped")


def _reached(context: Context, nodes: list[str], place: tuple[str, int], *, pod: bool = True) -> dict[str, str]:
    """open or closed, from each node and from a pod."""
    script = f"timeout 3 bash -c 'exec 3<>/dev/tcp/{place[0]}/{place[1]}' 2>/dev/null && echo open || echo closed"
    found = {node: context.engine.exec(node, ["bash", "-c", script]).stdout.strip() for node in nodes}
    if pod:
        argv = ["exec", "-n", PROBE, PROBE, "--", "bash", "-c", script]
        found["a pod"] = context.kubectl(*argv).stdout.strip()
    return found


@contextmanager
def _listener() -> Iterator[int]:
    """A port of this machine, which is reachable from the cluster."""
    with socketserver.ThreadingTCPServer(("", 0), socketserver.BaseRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@contextmanager
def _probe(context: Context) -> Iterator[None]:
    """A pod without network policies."""
    try:
        context.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PROBE}}], PROBE)
        context.kubectl.apply([context.pod(PROBE, "sleep 600", node=context.cpu_node)], PROBE)
        context.wait(f"pod/{PROBE}", "condition=Ready", 60, PROBE)
        yield
    finally:
        context.kubectl("delete", "namespace", PROBE, "--wait=false", check=False)
