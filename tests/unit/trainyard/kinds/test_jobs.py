"""Training jobs: objects made from a short spec, and refused specs."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sites import of_values

from trainyard.errors import UsageError
from trainyard.kinds import JobSpec, Mount, TeamConfig, manifest, registry, status
from trainyard.kinds.pods import device

TEAMS = [{"name": "vision", "gid": 20001, "maxGpusPerJob": 8}, {"name": "speech", "gid": 20002}]
CODE = {"code": "vision/code/x.tar.gz", "code_sha256": "0" * 64}
FRAMEWORKS = ("pytorch", "tensorflow", "mpi", "volcano", "job")


@pytest.fixture(scope="module")
def team_config() -> TeamConfig:
    return TeamConfig.of(
        of_values({"gpuImages": "cpu", "teams": TEAMS}, imageRegistry="registry.example.org"), "vision"
    )


@pytest.fixture
def made(team_config: TeamConfig) -> Callable[..., dict[str, Any]]:
    def make(framework: str = "pytorch", **more: Any) -> dict[str, Any]:
        values = {"nodes": 1 if framework == "job" else 2, "gpus": 2, "command": ("python", "train.py"), **more}
        return manifest(JobSpec(name="try", framework=framework, **values), team_config)

    return make


def templates(node: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec in a manifest."""
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        if isinstance(value, dict) and "containers" in value:
            yield value
        else:
            yield from templates(value)


def main_of(spec: dict[str, Any]) -> dict[str, Any]:
    return spec["containers"][0]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_pod_is_closed_and_every_gpu_stands_in_requests_and_limits(made: Any, framework: str) -> None:
    job = made(framework, **CODE, output="vision/jobs/try")
    specs = list(templates(job))
    assert specs
    with_gpus = []
    for spec in specs:
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"]
        for container in spec["containers"] + spec.get("initContainers", []):
            limits = container["resources"].get("limits", {})
            hides = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
            assert hides == ("nvidia.com/gpu" not in limits), container["name"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]["memory"] and container["resources"]["limits"]["memory"]
        resources = main_of(spec)["resources"]
        assert resources["requests"].get("nvidia.com/gpu") == resources["limits"].get("nvidia.com/gpu")
        gpus = resources["requests"].get("nvidia.com/gpu", 0)
        assert bool(spec.get("tolerations")) == bool(gpus)
        assert spec["nodeSelector"] == {"trainyard.io/pool": "gpu" if gpus else "cpu"}
        with_gpus.append(gpus)
        launcher = framework == "mpi" and not gpus
        assert spec.get("automountServiceAccountToken") is (None if launcher else False)
    assert with_gpus.count(2) == (1 if framework in ("job", "mpi") else 2)


@pytest.mark.parametrize(
    ("framework", "extra", "members"),
    [("pytorch", {}, 3), ("tensorflow", {"parameter_servers": 2}, 5), ("mpi", {}, 4), ("volcano", {}, 3)],
)
def test_the_gang_is_the_whole_job(made: Any, framework: str, extra: dict[str, Any], members: int) -> None:
    spec = made(framework, nodes=3, gpus=1, **extra)["spec"]
    least = spec.get("minAvailable") or spec["runPolicy"]["schedulingPolicy"]["minAvailable"]
    replicas = [task["replicas"] for task in spec.get("tasks", [])]
    for key in ("pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs"):
        replicas += [one["replicas"] for one in spec.get(key, {}).values()]
    assert least == sum(replicas) == members


def test_several_ranks_a_node_are_started_and_other_commands_are_left_alone(made: Any) -> None:
    def words(*command: str, framework: str = "pytorch", **more: Any) -> list[str]:
        return main_of(next(templates(made(framework, command=command, **more))))["command"]

    for framework in ("pytorch", "volcano"):
        found = words("python3", "-u", "train.py", "--lr", "0.1", framework=framework)
        assert found[:2] == ["python3", "-c"] and found[3:] == ["2", "-u", "train.py", "--lr", "0.1"]
        assert "$(" not in found[2]
    assert words("python", "train.py", gpus=1) == ["python", "train.py"]
    assert words("torchrun", "train.py") == ["torchrun", "train.py"]
    assert words("python", "-m", "torch.distributed.run", "x") == ["python", "-m", "torch.distributed.run", "x"]
    assert made(gpus=2)["spec"]["nprocPerNode"] == "2"


def test_the_only_rank_of_a_node_knows_its_place_on_it(made: Any) -> None:
    """Accelerate, and Transformers' Trainer with it, train alone without LOCAL_RANK."""

    def local(framework: str, **more: Any) -> list[str | None]:
        found = []
        for pod in templates(made(framework, **more)):
            env = {one["name"]: one.get("value") for one in main_of(pod)["env"]}
            found.append(env.get("LOCAL_RANK"))
        return found

    assert local("pytorch", gpus=1) == local("volcano", gpus=0) == ["0", "0"]
    assert local("pytorch", gpus=2) == [None, None]  # each rank is told its own
    assert local("pytorch", nodes=1, gpus=1) == [None]  # it is alone
    assert set(local("mpi", gpus=1)) == set(local("tensorflow", gpus=1)) == {None}
    assert local("pytorch", gpus=1, env={"LOCAL_RANK": "7"}) == ["7", "7"]


def test_the_device_is_said_before_the_command_of_every_pod_that_computes(made: Any) -> None:
    for kind in registry.KINDS:
        job = made(kind.framework, gpus=1, python="python3", **CODE)
        said = [main_of(pod)["command"] for pod in templates(job)]
        if kind.framework == "mpi":
            launcher, worker = said
            assert launcher[launcher.index("-wdir") + 2 : -3] == ["python3", "-c", device()]
            assert launcher[-3:] == ["horovod", "python", "train.py"] and worker == ["sleep", "infinity"]
        else:
            assert all(words[:3] == ["python3", "-c", device()] for words in said), kind.framework
            assert all(words[4:] == ["python", "train.py"] for words in said)
    assert main_of(next(templates(made(gpus=1))))["command"] == ["python", "train.py"]


def launcher_of(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    return found


def test_mpirun_starts_a_rank_in_each_slot_where_the_code_is(made: Any) -> None:
    job = made("mpi", **CODE)
    words = main_of(launcher_of(job))["command"]
    assert words[:3] == ["mpirun", "-np", "4"] and job["spec"]["slotsPerWorker"] == 2
    assert words[-4:] == ["-wdir", "/trainyard/code", "python", "train.py"]
    assert "initContainers" not in launcher_of(job)


@pytest.mark.parametrize(
    ("command", "started"),
    [
        (
            ["mpirun", "-np", "2", "python", "a.py"],
            ["mpirun", "-wdir", "/trainyard/code", "-np", "2", "python", "a.py"],
        ),
        (["mpiexec", "-wd", "/tmp", "python", "a.py"], ["mpiexec", "-wd", "/tmp", "python", "a.py"]),
        (
            ["mpirun", "python", "a.py", "--wd", "0.1"],  # the script's, not mpirun's
            ["mpirun", "-wdir", "/trainyard/code", "python", "a.py", "--wd", "0.1"],
        ),
    ],
)
def test_a_member_s_own_mpirun_starts_ranks_where_the_code_is(
    made: Any, command: list[str], started: list[str]
) -> None:
    job = made("mpi", command=tuple(command), **CODE)
    assert main_of(launcher_of(job))["command"] == started


def test_open_mpi_5_of_a_member_s_own_image_finds_hosts_and_agent(made: Any) -> None:
    found = {one["name"]: one.get("value") for one in main_of(launcher_of(made("mpi", image="team/own:1")))["env"]}
    assert found["PRTE_MCA_plm_ssh_agent"] == "/etc/mpi/kubexec.sh"
    assert found["PRTE_MCA_prte_default_hostfile"] == "/etc/mpi/hostfile"


def test_an_elastic_job_is_a_gang_of_its_least_size_under_torchrun(made: Any) -> None:
    given = {**CODE, "output": "vision/jobs/try", "checkpoints": "ckpt"}
    job = made(nodes=4, min_nodes=2, gpus=2, command=("python", "train.py", "--lr", "1"), **given)
    spec = job["spec"]
    assert spec["runPolicy"]["schedulingPolicy"]["minAvailable"] == 2
    assert (spec["elasticPolicy"]["minReplicas"], spec["elasticPolicy"]["maxReplicas"]) == (2, 4)
    assert spec["nprocPerNode"] == "2" and list(spec["pytorchReplicaSpecs"]) == ["Worker"]
    worker = spec["pytorchReplicaSpecs"]["Worker"]
    assert (worker["replicas"], worker["restartPolicy"]) == (4, "ExitCode")
    [pod] = templates(job)
    words = main_of(pod)["command"]
    assert words[:2] == ["python", "-c"] and "$(" not in words[2]
    assert words[3:] == ["python", "-m", "torch.distributed.run", "train.py", "--lr", "1"]
    assert "topologySpreadConstraints" not in pod
    fetch, keep = pod["initContainers"]
    assert "--restore=runs/vision/jobs/try/ckpt=ckpt" in fetch["args"] and "--only=-worker-0" in keep["args"]
    assert status.first_pod(job) == "try-worker-0" and status.least(job) == 2
    # Losing nodes is no error of the job: ranks may fail more often than `retries` says.
    restarts = [made(nodes=4, min_nodes=2, retries=n)["spec"]["elasticPolicy"]["maxRestarts"] for n in (0, 20)]
    assert restarts == [5, 20]


def test_commands_of_elastic_jobs(made: Any) -> None:
    def words(*command: str) -> list[str]:
        return main_of(next(templates(made(nodes=2, min_nodes=1, command=command))))["command"]

    module = ["python3", "-m", "torch.distributed.run", "-m", "my.train"]
    assert words("python3", "-m", "my.train")[3:] == module
    for own in (["torchrun", "train.py"], ["python", "-m", "torch.distributed.run", "x.py"]):
        assert words(*own)[1] == "-c" and words(*own)[3:] == own
    assert words("sh", "run.sh") == ["sh", "run.sh"]
    with pytest.raises(UsageError, match="-u is between python and the script"):
        words("python3", "-u", "train.py")


def test_what_kubernetes_would_replace_in_words_is_kept(made: Any) -> None:
    container = main_of(next(templates(made(command=("sh", "-c", "echo $(HOME)"), env={"X": "$(Y)"}))))
    assert container["command"][-1] == "echo $$(HOME)"
    assert {"name": "X", "value": "$$(Y)"} in container["env"]


def test_code_comes_in_before_and_results_go_out_beside_the_first_rank(made: Any) -> None:
    given = {"code": "vision/code/abc.tar.gz", "code_sha256": "abc", "output": "vision/jobs/try", "checkpoints": "ckpt"}
    master, worker = templates(made(**given))
    fetch, keep = master["initContainers"]
    assert "--code=runs/vision/code/abc.tar.gz" in fetch["args"]
    assert "--restore=runs/vision/jobs/try/ckpt=ckpt" in fetch["args"]
    assert keep["restartPolicy"] == "Always" and "--to=runs/vision/jobs/try" in keep["args"]
    assert [one["name"] for one in worker["initContainers"]] == ["trainyard-fetch"]
    assert main_of(master)["workingDir"] == "/trainyard/code"
    assert {"name": "TRAINYARD_RESULTS", "value": "/trainyard/code/results"} in main_of(master)["env"]
    assert fetch["image"].startswith("registry.example.org/trainyard/platform:")


def test_images_without_a_host_come_from_the_registry(made: Any) -> None:
    def image(name: str) -> str:
        return main_of(next(templates(made(image=name))))["image"]

    assert image("").startswith("registry.example.org/trainyard/trainer-torch:")
    assert image("team/own:1") == "registry.example.org/team/own:1"
    assert image("ghcr.io/team/own:1") == "ghcr.io/team/own:1"
    assert image("localhost:5000/own:1") == "localhost:5000/own:1"


def test_the_cpu_limit_rises_with_a_request_above_the_team_s_default(made: Any) -> None:
    small, large = (main_of(next(templates(made(cpu=cpu))))["resources"] for cpu in ("2", "12"))
    assert "cpu" not in small["limits"] and large["limits"]["cpu"] == "12"


def test_claims_are_mounted_once_each_and_read_only_where_asked(made: Any) -> None:
    mounts = (Mount("shared", "/data", True), Mount("shared", "/more", True), Mount("work.space", "/w"))
    spec = next(templates(made(mounts=mounts)))
    claims = [v["persistentVolumeClaim"] for v in spec["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [{"claimName": "shared", "readOnly": True}, {"claimName": "work.space"}]
    assert {"name": "claim-work-space", "mountPath": "/w"} in main_of(spec)["volumeMounts"]


def test_retries_let_ranks_start_again_and_count_as_the_operator_does(made: Any) -> None:
    spec = made(retries=2)["spec"]
    assert spec["runPolicy"]["backoffLimit"] == 3
    assert {one["restartPolicy"] for one in spec["pytorchReplicaSpecs"].values()} == {"OnFailure"}
    assert made("volcano", retries=2)["spec"]["policies"][0] == {"event": "PodFailed", "action": "RestartJob"}


def test_the_usual_priority_is_the_lowest_but_one(team_config: TeamConfig) -> None:
    assert team_config.team.priority == "training-normal"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gpus": 5}, "requests 10 GPUs over all nodes, but team vision may use 8"),
        ({"queue": "speech"}, "queue speech is not for team vision. use one of vision"),
        ({"priority": "training-high"}, "priority class training-high is not for team vision"),
        ({"pool": "tpu"}, "no node pool tpu. use one of gpu, cpu"),
        ({"pool": "cpu"}, "nodes of the pool cpu have no GPUs"),
        ({"pool": "gpu", "gpus": 0}, "the pool gpu is for jobs with GPUs"),
        ({"framework": "job", "nodes": 2}, "a plain Job is one pod"),
        ({"framework": "caffe"}, "unknown framework 'caffe'"),
        ({"parameter_servers": 1}, "parameterServers are for tensorflow only"),
        ({"framework": "volcano", "min_nodes": 1}, "only jobs of pytorch can be elastic, but framework is volcano"),
        ({"min_nodes": 2}, "minNodes is 2, but nodes is 2. use fewer for minNodes"),
        ({"min_nodes": 5}, "minNodes is 5, but nodes is 2"),
        ({"framework": "tensorflow", "processes": 2}, "tensorflow runs one process per node"),
        ({"shared_memory": "4Gi"}, "sharedMemory 4Gi is more than memory 2Gi"),
        ({"memory": "lots"}, "memory is 'lots'"),
        ({"command": ()}, "the job has no command"),
        ({"checkpoints": "results"}, "results and checkpoints are the same folder"),
    ],
)
def test_what_can_not_be_is_refused_with_what_to_write(made: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(**given)
    assert says in str(caught.value)


def test_outcomes_of_each_kind() -> None:
    def job(**given: Any) -> dict[str, Any]:
        return {"status": given}

    assert status.outcome({}) == ("running", "")
    assert status.outcome(job(conditions=[{"type": "Succeeded", "status": "True"}]))[0] == "succeeded"
    assert status.outcome(job(conditions=[{"type": "Failed", "status": "True", "message": "no"}])) == ("failed", "no")
    assert status.outcome(job(conditions=[{"type": "Failed", "status": "False"}]))[0] == "running"
    assert status.outcome(job(state={"phase": "Completed"}))[0] == "succeeded"
    assert status.outcome(job(state={"phase": "Aborted"})) == ("failed", "aborted")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_pods_whose_log_tells_the_story(made: Any, framework: str) -> None:
    job = made(framework)
    pods = {"pytorch": "try-master-0", "tensorflow": "try-chief-0", "mpi": "try-launcher", "volcano": "try-master-0"}
    assert status.first_pod(job) == pods.get(framework, "")
    assert status.container(job) in {main_of(spec)["name"] for spec in templates(job)}
    assert status.plural(job).endswith("jobs")


def test_the_manifest_is_plain_data(made: Any) -> None:
    for framework in FRAMEWORKS:
        job = made(framework, labels={"a": "b"}, owner={"kind": "Workflow", "name": "w", "uid": "u"})
        assert json.loads(json.dumps(job)) == job
        assert job["metadata"]["ownerReferences"][0]["name"] == "w" and job["metadata"]["labels"]["a"] == "b"
