"""Makes, shows, loads images into and removes a cluster. A cluster is created completely or leaves nothing behind."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.kube.kubectl import Kubectl
from trainyard.names import GPU
from trainyard.paths import cache_dir
from trainyard.shell import run, uninterrupted
from trainyard_dev import proxies, tools
from trainyard_dev.cluster import config, login, nodes
from trainyard_dev.engine import Engine, check_builder
from trainyard_dev.gpu import cdi
from trainyard_dev.gpu.mock import MockGpuSpec
from trainyard_dev.images import registry
from trainyard_dev.images.source import Source
from trainyard_dev.images.supply import Supply
from trainyard_dev.progress import Progress

CLUSTER_LABEL = "io.x-k8s.kind.cluster"
INOTIFY = {"max_user_instances": 1024, "max_user_watches": 524288}
NEEDED_GB = 12
STEPS = 8


@dataclass(frozen=True)
class Options:
    """The options of a cluster.

    `gpu` is mock or real, and `gpu_reason` is the reason; `spec` describes mock GPUs, `uuids` lists real ones. `login`:
    the API server accepts tokens of an issuer that is configured later.
    """

    name: str
    source: Source
    gpu: str = "mock"
    spec: MockGpuSpec = field(default_factory=MockGpuSpec)
    uuids: tuple[str, ...] = ()
    gpu_reason: str = ""
    login: bool = False

    @property
    def nodes(self) -> list[config.Node]:
        """The cluster's nodes."""
        return config.nodes(self.name, self.gpu)


def kubeconfig(name: str) -> Path:
    """The path of the cluster's kubeconfig, in the cache; the user's own is left alone."""
    return cache_dir() / "clusters" / name / "kubeconfig"


def exists(engine: Engine, name: str) -> bool:
    """Whether any container of a cluster of that name exists."""
    return bool(engine.containers(f"{CLUSTER_LABEL}={name}"))


def up(engine: Engine, options: Options, supply: Supply | None = None, progress: Progress | None = None) -> Kubectl:
    """Creates the cluster with networking, registry and GPU devices; every node is Ready afterwards.

    Args:
        supply: makes the images; with its own, a caller continues while later ones are made. Without it,
            all of them are in the registry afterwards.
        progress: counts the steps; with its own, a caller can read their times afterwards.

    Raises:
        TrainyardError: the name is taken, or a step failed; then the half-made cluster has been removed.
    """
    name = config.check_name(options.name)
    if exists(engine, name):
        raise TrainyardError(
            f"a cluster named {name} exists already",
            hint=f"remove it with `trainyard cluster down --name {name}`, or choose another name",
        )
    _check_machine(engine)
    making = supply or Supply(engine, options.source)
    making.start()
    try:
        kubectl = _up(engine, options, making, progress or Progress(STEPS, f"Cluster {describe(options)}"))
        if not supply:
            making.wait(image.name for image in making.images)
        return kubectl
    except BaseException:
        print("  removing the incomplete cluster …", flush=True)
        try:
            with uninterrupted():
                making.close()
                down(engine, name)
        except TrainyardError as error:  # the first error counts
            print(f"could not remove it: {error}", flush=True)
        raise


def again(engine: Engine, options: Options, supply: Supply) -> Kubectl:
    """A client for an existing cluster, with its registry running and `supply` working for it."""
    supply.start()
    supply.serve()
    return Kubectl(kubeconfig(options.name))


def _up(engine: Engine, options: Options, supply: Supply, progress: Progress) -> Kubectl:
    name, base = options.name, supply.base
    with progress.step("registry"):
        supply.serve()
    with progress.step(f"images of the cluster itself ({len(supply.missing('cluster'))} to make)"):
        supply.wait_stage("cluster")
    with progress.step("base and node image"):
        options.source.base(engine)
        image = options.source.node_image(engine, base)
    with progress.step("node folders"):
        mounts = _mounts(engine, options, base)
        patches = [login.patch()] if options.login else []
        text = config.render(image, mounts, name, patches, gpu=options.gpu)
        file = config.write(kubeconfig(name).parent / "kind.yaml", text)
    with progress.step("kind create cluster"):
        _raise_inotify()
        words = ["create", "cluster", "--name", name, "--config", str(file), "--kubeconfig", str(kubeconfig(name))]
        run(
            [tools.binary("kind"), *words],
            env={**engine.env, **proxies.around([registry.NAME])},  # kind passes them to the nodes
            timeout=600,
            hint="see `trainyard doctor`",
        )
    kubectl = Kubectl(kubeconfig(name))
    with progress.step("GPU devices and NFS client on nodes"):
        for node in options.nodes:
            if node.has_gpus and options.gpu == "mock":
                nodes.make_devices(engine, node.name, options.spec.count)
            elif node.has_gpus:
                engine.exec(node.name, ["ldconfig"])  # the links to the driver's libraries, such as libcuda.so.1
            if not nodes.kernel_has_nfs():
                nodes.install_userspace_nfs(engine, node.name)
    with progress.step("pod networking, network policies and local volumes (kind-agent)"):
        kubectl("apply", "--server-side", "--force-conflicts", "-f", config.MANIFESTS / "kind-agent.yaml")
    with progress.step("nodes ready"):
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=240s", timeout=250)
    return kubectl


def describe(options: Options) -> str:
    """A line such as `NAME, images: build (asked for), GPUs: mock (no GPU here)`."""
    why = f" ({options.gpu_reason})" if options.gpu_reason else ""
    return f"{options.name}, images: {options.source.kind} ({options.source.reason}), GPUs: {options.gpu}{why}"


def down(engine: Engine, name: str) -> bool:
    """Removes the cluster, its registry container and its folder; the registry's storage stays cached.

    Returns:
        whether there was anything to remove.
    """
    if found := engine.containers(f"{CLUSTER_LABEL}={name}"):
        engine("kill", *found, check=False)  # without waiting for each
        with ThreadPoolExecutor() as pool:  # `kind delete cluster` removes one after another
            list(pool.map(lambda node: _remove(engine, node), found))
    if not engine.containers(CLUSTER_LABEL):
        registry.stop(engine)
    shutil.rmtree(cache_dir() / "clusters" / name, ignore_errors=True)
    return bool(found)


def _remove(engine: Engine, node: str) -> None:
    """Removes a node with its volumes: on podman kind labels them with its name; on Docker they are removed with it."""
    engine("rm", "-f", "-v", node, check=False)
    for volume in engine("volume", "ls", "-q", "--filter", f"label={node}", check=False).stdout.split():
        engine("volume", "rm", "-f", volume, check=False)


def status(engine: Engine, name: str) -> dict[str, object]:
    """The cluster's containers, nodes, GPUs and pods, as plain data."""
    if not exists(engine, name):
        raise TrainyardError(f"no cluster named {name}", hint="create one with `trainyard cluster up`")
    kubectl = Kubectl(kubeconfig(name))
    listed = []
    for node in kubectl.get("nodes"):
        ready = next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")
        listed.append(
            {
                "name": node["metadata"]["name"],
                "ready": ready == "True",
                "pool": node["metadata"]["labels"].get("trainyard.io/pool", "control-plane"),
                "gpus": int(node["status"].get("allocatable", {}).get(GPU, 0)),
                "taints": [f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in node["spec"].get("taints", [])],
            }
        )
    pods = kubectl.get("pods", "-A")
    return {
        "name": name,
        "engine": engine.name,
        "kubeconfig": str(kubeconfig(name)),
        "nodes": listed,
        "pods": {
            phase: sum(p["status"].get("phase") == phase for p in pods)
            for phase in ("Running", "Pending", "Failed", "Succeeded")
        },
    }


def load_image(engine: Engine, ref: str) -> str:
    """Pushes an image of the engine's own store to the cluster's registry, from where every node gets it.

    Returns:
        the reference for use in a pod.
    """
    if not engine.has_image(ref):
        raise TrainyardError(
            f"{engine.name} has no image {ref}", hint=f"build or pull it first: `{engine.name} images`"
        )
    if engine("inspect", registry.NAME, check=False).returncode:
        raise TrainyardError("the cluster's registry is not running", hint="run `trainyard cluster up`")
    path, tag = _mirror_name(ref)
    registry.push_as(engine, ref, f"{registry.address(engine)}/{path}:{tag}")
    return f"docker.io/{path}:{tag}"


def _mirror_name(ref: str) -> tuple[str, str]:
    """(repository, tag) under which nodes ask the mirror for a user's image, as Kubernetes completes short names."""
    host, slash, rest = ref.partition("/")
    name = rest if slash and ("." in host or ":" in host or host == "localhost") else ref
    path, _, tag = name.rpartition(":") if ":" in name.rpartition("/")[2] else (name, "", "latest")
    return path if "/" in path else f"library/{path}", tag


def _mounts(engine: Engine, options: Options, base: str) -> dict[str, list[nodes.Mount]]:
    hosts = registry.mirror_config(cache_dir() / "containerd-hosts")
    shared = [nodes.Mount(hosts, "/etc/containerd/certs.d")]
    if not nodes.kernel_has_nfs():
        shared.append(nodes.userspace_nfs(engine, base))
    mounts = {}
    for node in options.nodes:
        mounts[node.name] = list(shared)
        if node.has_gpus and options.gpu == "mock":
            mounts[node.name].append(nodes.mock_gpus(options.name, node.name, options.spec))
        elif node.has_gpus:
            mounts[node.name] += [nodes.Mount(host, path) for path, host in cdi.files().items()]
    if options.login:
        mounts[f"{options.name}-{login.CONTROL_PLANE}"].append(login.prepared(options.name))
    return mounts


def gpus_due(options: Options) -> dict[str, int]:
    """How many GPUs each node of the GPU pool must offer."""
    count = options.spec.count if options.gpu == "mock" else len(options.uuids)
    return {node.name: count for node in options.nodes if node.has_gpus}


def _check_machine(engine: Engine) -> None:
    if os.geteuid() != 0:
        raise TrainyardError("kind's nodes require root on this machine", hint="run the command as root (sudo)")
    free = shutil.disk_usage(cache_dir()).free / 1e9
    if free < NEEDED_GB:
        raise TrainyardError(
            f"only {free:.1f} GB are free; a cluster needs {NEEDED_GB}",
            where=str(cache_dir()),
            hint="free some space, or set TRAINYARD_CACHE to another disk",
        )
    if not Path("/dev/fuse").exists() and not nodes.kernel_has_nfs():
        raise TrainyardError("neither the kernel nor FUSE can mount NFS: /dev/fuse is missing", hint="modprobe fuse")
    check_builder(engine)
    Path("/lib/modules").mkdir(exist_ok=True)  # kind mounts it


def _raise_inotify() -> None:
    """Raises inotify limits: four nodes' kubelets and containerds watch more files than many kernels allow."""
    for key, needed in INOTIFY.items():
        path = Path("/proc/sys/fs/inotify") / key
        try:
            if int(path.read_text()) < needed:
                path.write_text(str(needed))
        except OSError:
            print(f"  fs.inotify.{key} stays below {needed}: this machine does not allow a change", flush=True)
