"""Network policies are enforced, not only stored."""

from trainyard import components
from trainyard_dev.e2e.context import SETTLE, SYSTEM, Context, way
from trainyard_dev.e2e.entry import check
from trainyard_dev.e2e.recorder import Figures, require


@check("network.policies", title="a team's pod reaches the object store, but no other service of the platform",
       inputs=("charts/trainyard/templates",))  # fmt: skip
def policies(context: Context, figures: Figures) -> None:
    """A team's pod reaches only the destinations in its policies, although a node reaches all of them."""
    targets = {"object store": ("trainyard-minio", 9000), "admission": ("trainyard-admission-service", 443)}
    services = {s["metadata"]["name"]: s["spec"]["clusterIP"] for s in context.kubectl.get("services", "-n", SYSTEM)}
    lines = [way(services[name], port) for name, port in targets.values()]
    for what, line in zip(targets, lines, strict=True):
        figures[f"{what} from a node"] = context.engine.exec(context.cpu_node, ["bash", "-c", line]).stdout.strip()
    pod = context.pod("net", "\n".join([SETTLE, *lines]))
    seen = context.run_pod(pod)[1].split()
    figures |= {f"{what} from a pod": answer for what, answer in zip(targets, seen, strict=True)}
    nodes = {answer for where, answer in figures.items() if where.endswith("a node")}
    require(nodes == {"open"}, f"a node does not reach every service: {figures}")
    require(seen[0] == "open", "a team's pod can't reach the object store")
    require(seen[1] == "closed", "a team's pod reaches a service that no policy allows")


@check("network.first-moment", title="a starting pod of a team reaches no service of the platform either",
       inputs=("charts/trainyard/templates",))  # fmt: skip
def first_moment(context: Context, figures: Figures) -> None:
    """A team's pod that connects at once, before its own policies apply, is refused by the destination's policy."""
    services = context.kubectl.get("services", "-n", SYSTEM)
    address = next(s["spec"]["clusterIP"] for s in services if s["metadata"]["name"] == "trainyard-admission-service")
    connect = way(address, 443, seconds=1)
    node = context.engine.exec(context.cpu_node, ["bash", "-c", connect])
    figures["from a node"] = node.stdout.strip()
    script = f"for try in 1 2 3; do {connect}; done"
    figures["from a pod that begins"] = context.run_pod(context.pod("net-first", script))[1]
    require(figures["from a node"] == "open", f"a node does not reach the service: {figures}")
    seen = set(str(figures["from a pod that begins"]).split())
    require(seen == {"closed"}, f"a team's pod reached the platform's admission as it started: {figures}")


def series_closed(context: Context) -> int:
    """How many metrics endpoints run, none reachable from a team's pod. Raises CheckError for a reachable one."""
    store = next(s for s in context.kubectl.get("services", "-n", SYSTEM) if s["metadata"]["name"] == "trainyard-minio")
    targets = {"the object store": (store["spec"]["clusterIP"], 9000)}
    for one in components.endpoints():
        labels = ",".join(f"{key}={value}" for key, value in one["pods"].items())
        for pod in context.kubectl.get("pods", "-n", SYSTEM, "-l", labels)[:1]:
            targets[one["name"]] = (pod["status"]["podIP"], int(one["port"]))
    script = "\n".join([SETTLE, *(way(*place, seconds=2) for place in targets.values())])
    seen = context.run_pod(context.pod("net-series", script))[1].split()
    require(len(seen) == len(targets), f"the probing pod printed {seen}")
    found = [name for name, answer in zip(targets, seen, strict=True) if answer == "open"]
    require(found[:1] == ["the object store"], "a team's pod can't reach the object store")
    require(not found[1:], f"a team's pod reaches {', '.join(found[1:])}, which have series of all teams")
    return len(targets) - 1


@check("network.nfs-closed", title="pods cannot reach the NFS server except through mounts", inputs=("charts/nfs",))
def storage_closed(context: Context, figures: Figures) -> None:
    """Pods can't connect to the NFS server, which trusts every client; nodes can."""
    services = context.kubectl.get("services", "-n", SYSTEM, "-l", "app.kubernetes.io/name=nfs")
    host = services[0]["spec"]["clusterIP"]
    connect = way(host, 2049)
    for node in (context.cpu_node, context.gpu_nodes[0]):
        figures[f"from {node}"] = context.engine.exec(node, ["bash", "-c", connect]).stdout.strip()
    pod = context.pod("nfs-direct", f"{SETTLE}; {connect}", node=context.cpu_node)
    figures["from a pod"] = context.run_pod(pod)[1]
    nodes = [seen for place, seen in figures.items() if place != "from a pod"]
    require(set(nodes) == {"open"}, f"not every node reaches the NFS server: {figures}")
    require(figures["from a pod"].endswith("closed"), "a tenant's pod can connect to the NFS server")
