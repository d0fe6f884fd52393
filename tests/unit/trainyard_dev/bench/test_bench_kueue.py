"""Objects for Kueue: queues with the nodes' capacity, pods as its webhook would change them."""

from pathlib import Path

from trainyard_dev.bench import objects
from trainyard_dev.bench.harness import GPU
from trainyard_dev.bench.kueue_setup import configuration, queues
from trainyard_dev.bench.traces import Pod

NODES = [{"cpu": "92", "memory": "520Gi", GPU: "8"}, {"cpu": "500m", "memory": "1048576Ki"}]


def test_a_queue_has_the_room_of_all_nodes_and_the_strategy_of_its_column() -> None:
    flavor, cluster, local = queues({"strategy": "StrictFIFO"}, "default", NODES)
    assert flavor["spec"] == {}
    assert cluster["spec"]["queueingStrategy"] == "StrictFIFO"
    [group] = cluster["spec"]["resourceGroups"]
    quotas = {one["name"]: one["nominalQuota"] for one in group["flavors"][0]["resources"]}
    assert quotas == {"cpu": "92", "memory": str(521 * 2**30), GPU: "8"}
    assert local["spec"]["clusterQueue"] == cluster["metadata"]["name"]


def test_the_manager_listens_on_this_machine_alone(tmp_path: Path) -> None:
    config = configuration(1, 2, 3, tmp_path)
    addresses = [
        config["health"]["healthProbeBindAddress"],
        config["metrics"]["bindAddress"],
        config["webhook"]["host"],
    ]
    assert [address.split(":")[0] for address in addresses] == ["127.0.0.1"] * 3


def test_a_pod_of_a_group_waits_for_the_quota_of_all() -> None:
    pod = objects.pod(Pod("a-0", 1000, 1024, 8), "kueue", group="a", of=4, queue="team", labels={"job": "a"})
    meta = pod["metadata"]
    assert meta["labels"]["job"] == meta["labels"]["kueue.x-k8s.io/pod-group-name"] == "a"
    assert meta["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert meta["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "4"
    assert {"name": "kueue.x-k8s.io/admission"} in pod["spec"]["schedulingGates"]


def test_other_schedulers_get_no_gate() -> None:
    assert "schedulingGates" not in objects.pod(Pod("a-0", 1000, 1024), "kube", group="a", of=4)["spec"]
