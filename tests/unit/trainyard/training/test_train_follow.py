"""Following a training job: where it waits, its output, why it failed, and whose fault it is."""

from typing import Any

import pytest
from train_cluster import Cluster, Object, group, pod, state, warning

from trainyard.errors import TrainyardError
from trainyard.kinds import JobSpec, TeamConfig, manifest
from trainyard.kube import KubeError
from trainyard.observe import jobs as watch
from trainyard.observe.words import last_words
from trainyard.training import follow


@pytest.fixture
def job(team_config: TeamConfig) -> Object:
    spec = JobSpec("digits-abc", ("python", "train.py"), nodes=2, gpus=1, code="c", code_sha256="0", output="o")
    return manifest(spec, team_config)


def test_a_job_is_followed_from_the_queue_to_its_end(job: Object, capfdbinary: Any) -> None:
    waiting = [group("other", "Pending", "1"), group("digits-abc", "Pending", "2", "0/2 nodes have a GPU")]
    pods = [pod("digits-abc-master-0", "Running"), pod("digits-abc-worker-1", "Running")]
    cluster = Cluster(
        {"job": state(), "podgroups": waiting},
        {"job": state(Running=""), "pods": pods},
        {"job": state(Succeeded=""), "pods": [pod("digits-abc-master-0", "Succeeded", 0)]},
        logs={"digits-abc-master-0": ["epoch 1", "epoch 2"]},
    )
    said: list[str] = []
    end = follow.follow(cluster, job, said.append)  # type: ignore[arg-type]
    assert end == follow.End(True, 0, "", True)
    assert said[0] == "in queue speech, number 2 of 2 of this team: 0/2 nodes have a GPU"
    assert said[1] == "2 pods running on node-0, node-1"
    assert capfdbinary.readouterr().out == b"epoch 1\nepoch 2\n"


def test_the_way_to_mpi_s_workers_is_not_in_the_log(job: Object, capfdbinary: Any) -> None:
    noise = ["+ POD_NAME=x-worker-1", "+ shift", "+ /opt/kube/kubectl exec x-worker-1 -- /bin/sh -c orted"]
    noise.append('Defaulted container "mpi" out of: mpi, trainyard-fetch (init)')
    noise.append("[x-launcher:00001] plm:ssh: Warning: setpgid(9,9) failed in parent with errno=Permission denied(13)")
    polls = (
        {"job": state(Running=""), "pods": [pod("digits-abc-master-0", "Running")]},
        {"job": state(Succeeded=""), "pods": [pod("digits-abc-master-0", "Succeeded", 0)]},
    )
    printed = {"digits-abc-master-0": [*noise, "0 of 2", "+ 1"]}
    follow.follow(Cluster(*polls, logs=printed), job, lambda text: None)  # type: ignore[arg-type]
    assert capfdbinary.readouterr().out == b"0 of 2\n+ 1\n"


def test_a_command_that_the_image_lacks_is_reported_in_the_runtime_s_words(job: Object) -> None:
    failed = pod("digits-abc-master-0", "Failed", 128)
    ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    ended |= {"reason": "StartError", "message": 'runc: unable to start container process: exec: "python": not found'}
    polls = {"job": state(Failed="backoff limit"), "pods": [failed]}
    end = follow.follow(Cluster(polls, logs={"digits-abc-master-0": ["code: 3 files"]}), job, print)  # type: ignore[arg-type]
    words = 'its command can\'t be started: exec: "python": not found'
    assert end.message == f"digits-abc-master-0 ended with code 128: {words}"


def test_gangs_whose_pods_have_gone_are_not_before_it_in_the_queue(job: Object) -> None:
    groups = [
        group("run", "Inqueue", "1"),
        group("stale", "Inqueue", "1"),
        group("alive", "Inqueue", "2"),
        group("digits-abc", "Pending", "3"),
    ]
    groups[0]["metadata"]["ownerReferences"] = [{"kind": "Workflow", "name": "run"}]
    others = [
        {
            "metadata": {"name": gang, "annotations": {"scheduling.k8s.io/group-name": gang}},
            "spec": {},
            "status": status,
        }
        for gang, status in (("stale", {"phase": "Failed"}), ("alive", {"phase": "Pending"}))
    ]
    snapshot = watch.Watcher(Cluster({"job": state(), "podgroups": groups, "pods": others}), job).poll()  # type: ignore[arg-type]
    assert watch.place(snapshot, "digits-abc") == "in queue speech, number 2 of 2 of this team"


def test_the_rank_that_failed_first_is_named_with_its_error_and_its_code(job: Object) -> None:
    pods = [pod("digits-abc-master-0", "Failed", 143, "3"), pod("digits-abc-worker-0", "Failed", 7, "2")]
    log = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    boom()"]
    logs = {"digits-abc-worker-0": [*log, "ValueError: loss is NaN at step 17"]}
    end = follow.follow(Cluster({"job": state(Failed="job failed"), "pods": pods}, logs=logs), job, print)  # type: ignore[arg-type]
    assert (end.succeeded, end.code) == (False, 7)
    assert end.message == "digits-abc-worker-0 ended with code 7: ValueError: loss is NaN at step 17"


def test_a_rank_that_only_lost_its_peers_is_not_the_one_to_blame(job: Object) -> None:
    pods = [pod("digits-abc-master-0", "Failed", 1, "2"), pod("digits-abc-worker-0", "Failed", 1, "2")]
    lost = "RuntimeError: [./gloo/pair.cc:598] Connection closed by peer [10.0.0.1]:1"
    logs = {"digits-abc-master-0": [lost], "digits-abc-worker-0": ["ValueError: NaN", "Traceback", lost]}
    end = follow.follow(Cluster({"job": state(Failed="no"), "pods": pods}, logs=logs), job, print)  # type: ignore[arg-type]
    assert end.message == "digits-abc-worker-0 ended with code 1: ValueError: NaN"


def test_a_job_that_failed_without_a_pod_tells_its_controller_s_words(job: Object) -> None:
    end = follow.follow(Cluster({"job": state(Failed="deadline exceeded")}), job, print)  # type: ignore[arg-type]
    assert end == follow.End(False, 1, "deadline exceeded", False)


def test_pods_that_are_refused_end_it_at_once(job: Object) -> None:
    event = warning("digits-abc", "PyTorchJob", "FailedCreatePod", "pods x is forbidden: violates PodSecurity")
    cluster = Cluster({"job": state(), "events": [event]})
    with pytest.raises(TrainyardError, match=r"pods are refused: .*violates PodSecurity.*the job was deleted"):
        follow.follow(cluster, job, print)  # type: ignore[arg-type]
    assert cluster.deleted == ["PyTorchJob/digits-abc"]


def test_a_full_quota_is_reported_and_waited_for(job: Object) -> None:
    event = warning("digits-abc", "PyTorchJob", "FailedCreatePod", "pods x is forbidden: exceeded quota: team")
    said: list[str] = []
    polls = ({"job": state(), "events": [event]}, {"job": state(), "events": [event]}, {"job": state(Succeeded="")})
    assert follow.follow(Cluster(*polls), job, said.append).succeeded  # type: ignore[arg-type]
    reported = "warning: digits-abc: FailedCreatePod: pods x is forbidden: exceeded quota: team"
    assert [line for line in said if "warning" in line] == [reported]


def test_a_deleted_job_and_one_that_can_not_be_read_end_it(job: Object) -> None:
    with pytest.raises(TrainyardError, match="was deleted while it was followed"):
        follow.follow(Cluster({"job": None}), job, print)  # type: ignore[arg-type]
    with pytest.raises(KubeError, match="no right"):
        follow.follow(Cluster({"job": KubeError("no right", status=403)}), job, print)  # type: ignore[arg-type]


def test_a_short_outage_of_the_api_is_waited_out(job: Object) -> None:
    polls = ({"job": KubeError("away")}, {"job": KubeError("away")}, {"job": state(Succeeded="")})
    assert follow.follow(Cluster(*polls), job, print).succeeded  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["a", "Traceback (most recent call last):", '  File "x", line 1', "    y", "KeyError: 'k'"], "KeyError: 'k'"),
        (
            ["torch.cuda.OutOfMemoryError: CUDA out of memory", "", "  more"],
            "torch.cuda.OutOfMemoryError: CUDA out of memory",
        ),
        (["one", "two"], "one | two"),
        ([], ""),
        (  # torch from 2.2 on, two ranks of a pod: the one that lost the other comes last
            [
                "[rank3]: Traceback (most recent call last):",
                '[rank3]:   File "train.py", line 26, in main',
                "[rank3]: ValueError: loss is NaN on rank 3",
                "[rank2]: Traceback (most recent call last):",
                "[rank2]:     loss.backward()",
                "[rank2]:     ^^^^^^^^^^^^^^^",
                "[rank2]: RuntimeError: [./gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:6",
                "rank 3 ended with code 1",
            ],
            "ValueError: loss is NaN on rank 3",
        ),
        (["[default0]:KeyError: 'k'", "[1,0]<stdout>: epoch 2"], "KeyError: 'k'"),
    ],
)
def test_last_words_are_the_error_without_frames(lines: list[str], words: str) -> None:
    assert last_words(lines) == words


def test_what_controllers_print_of_the_api_s_refusals_becomes_a_sentence_and_is_said_once() -> None:
    raw = 'Error creating pods: [failed, err: &errors.StatusError{{Status:"Failure", '
    raw += 'Message:"pods \\"w\\" is forbidden: exceeded quota", Details:(*v1.StatusDetails)({})}}]'
    events = [warning("j", "Job", "FailedCreate", raw.format(at)) for at in ("0x1", "0x2")]
    said = watch.warnings(watch.JobSnapshot({}, [], [], [], events, {}))
    assert said == ['j: FailedCreate: pods "w" is forbidden: exceeded quota']


def test_places_of_a_job_are_reported_in_words() -> None:
    def place(**snapshot: Any) -> str:
        found = {"pods": [], "groups": [], "events": [], "priorities": {}, **snapshot}
        return watch.place(watch.JobSnapshot({"metadata": {"uid": "u"}}, line=found["groups"], **found), "j")

    assert place() == "waiting for its pods"
    assert place(pods=[pod("a", "Pending"), pod("b", "Running")]) == "starting: 1 of 2 pods run"
    assert place(pods=[pod("a", "Succeeded", 0), pod("b", "Running")]) == "ending: 1 of 2 pods ended"
    assert place(pods=[pod("b-1", "Running")]) == "1 pod running on node-1"
    assert place(groups=[group("j-u", "Inqueue", "1")]) == "in queue speech, number 1 of 1 of this team"
