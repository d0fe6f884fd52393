"""Training steps without a server: names, command words, outages, messages of pods."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard.observe import pods, refusals
from trainyard.pipelines import steps
from trainyard.pipelines.steps import cluster, component, results, stopping
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.request import Request
from trainyard.pipelines.steps.run import Run
from trainyard.pipelines.steps.wait import Watch
from trainyard_agent.api import ApiError

ENV = {
    "TRAINYARD_RUN": "mnist-1", "TRAINYARD_RUN_UID": "u1", "TRAINYARD_TEAM": "vision",
    "TRAINYARD_QUEUE": "vision", "TRAINYARD_STEP": '{"task": "train"}',
}  # fmt: skip
GIVEN: dict[str, Any] = {"command": ["python3", "train.py"], "name": "mnist", "env": {}}
MANIFEST = {
    "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "mnist-1", "namespace": "vision"},
}  # fmt: skip


def request_of(team_config: dict[str, str] | None = None, **given: Any) -> Request:
    return Request.of("pytorch", {**GIVEN, **given}, Run.of({**ENV, **(team_config or {})}))


def mpi(*command: str, **given: Any) -> Request:
    return Request.of("mpi", {**GIVEN, "nodes": 1, "processes": 0, "command": list(command), **given}, Run.of(ENV))


def test_a_command_that_starts_ranks_is_the_job_that_it_describes() -> None:
    hosts = ",".join(f"server{number}:4" for number in range(1, 5))
    words = ["horovodrun", "-np", "16", "-H", hosts, "--autotune", "python", "t.py"]
    step = mpi(*words, env={"LR": "{job}"}, gpus=4)
    spec, note = step.spec(), step.launched()[1]
    assert (spec.nodes, spec.processes, spec.gpus, spec.command) == (4, 4, 4, ("python", "t.py"))
    assert spec.env == {"LR": step.job, "HOROVOD_AUTOTUNE": "1"}
    assert note.startswith("horovodrun is run as an MPIJob: 4 nodes with 4 ranks each, which the queue chooses")
    assert mpi("mpirun", "-np", "4", "python", "t.py", nodes=2).spec().processes == 2


def test_a_command_that_starts_ranks_otherwise_than_the_step_is_refused() -> None:
    with pytest.raises(UsageError, match="horovodrun says nodes 4, but the settings say 3"):
        mpi("horovodrun", "-np", "4", "-H", "a:1,b:1,c:1,d:1", "python", "t.py", nodes=3).spec()
    with pytest.raises(UsageError, match="the hosts would have 2, 1 ranks"):
        mpi("horovodrun", "-np", "3", "-H", "a:2,b:2", "python", "t.py").spec()


def test_a_plain_command_is_left_as_it_is() -> None:
    step = mpi("python", "t.py", nodes=2, processes=2)
    assert step.launched()[1] == "" and (step.spec().nodes, step.spec().command) == (2, ("python", "t.py"))


def test_name_follows_from_run_task_and_content() -> None:
    first = request_of().job
    assert first == request_of().job  # a second attempt
    others = [
        request_of({"TRAINYARD_RUN_UID": "u2"}),
        request_of({"TRAINYARD_STEP": '{"task": "again"}'}),
        request_of(arguments="--lr=1"),
        request_of(data=SimpleNamespace(uri="s3://runs/x")),
    ]
    assert len({first, *(other.job for other in others)}) == 5
    assert len(request_of(name="a-name-that-is-far-too-long-for-the-name-of-any-pod-of-a-job").job) <= 50


def test_words_are_filled_in_and_other_braces_are_left() -> None:
    request = request_of(
        command=["train", "--data={data}", "--out={out}", "--keep={checkpoints}", "--n={job}", '{"a": 1}', "--lr={lr}"],
        arguments="--size={size} 'two words'",
        settings={"lr": 0.1, "size": 64.0},
        data=SimpleNamespace(uri="s3://runs/vision/in"),
    )
    place = f"s3://runs/vision/pipelines/jobs/{request.job}"
    assert request.words() == [
        "train", "--data=s3://runs/vision/in", f"--out={place}/results", f"--keep={place}/checkpoints",
        f"--n={request.job}", '{"a": 1}', "--lr=0.1", "--size=64", "two words",
    ]  # fmt: skip


def test_spec_carries_all_that_a_component_takes() -> None:
    mounts = [{"claim": "workspace", "path": "/work", "readOnly": True}]
    spec = request_of(
        nodes=2, gpus=1, queue="training", priority="training-high", mounts=mounts, checkpoints="saved",
        env={"A": "{job}", "TOKEN": {"secret": "mine", "key": "token"}}, deadline="90m", retries=1, results="outcome",
    ).spec()  # fmt: skip
    assert (spec.nodes, spec.gpus, spec.queue, spec.priority) == (2, 1, "training", "training-high")
    assert (spec.mounts[0].claim, spec.mounts[0].read_only, spec.checkpoints) == ("workspace", True, "saved")
    assert spec.env == {"A": spec.name, "TOKEN": {"secret": "mine", "key": "token"}}
    assert (spec.deadline, spec.retries, spec.results) == (5400, 1, "outcome")
    assert spec.output == f"vision/pipelines/jobs/{spec.name}"
    assert spec.labels == {"trainyard.io/run": "mnist-1", "trainyard.io/task": "train"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": ["a", "{data}"]}, "the step has no `data`"),
        ({"arguments": "'open"}, "can't be split into words"),
        ({"mounts": ["workspace"]}, "invalid mount: 'workspace'"),
        ({"deadline": "soon"}, "invalid duration"),
        ({"nodes": 0}, "nodes must be at least 1"),
    ],
)
def test_what_contradicts_itself_is_reported(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainyardError, match=words):
        request_of(**given).spec()


def test_outside_a_pipeline_a_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENV:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit, match="this is not a step of a pipeline"):
        steps.train("pytorch", GIVEN)


class Server:
    """Answers with what the test lists; errors are raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.calls = list(answers), []

    def call(self, method: str, path: str, body: Any = None, **_: Any) -> Any:
        self.calls.append((method, path))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def text(self, path: str, query: Any) -> str:
        return "epoch 1\nloss is NaN\nRuntimeError: stop at step 17\n"

    def lines(self, path: str, query: Any) -> Any:
        return iter(())


def jobs_of(server: Server) -> Jobs:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Jobs(server, "vision", clock=lambda: now[0], sleep=sleep)


def test_hiccups_of_the_api_server_are_waited_out() -> None:
    away = [ApiError(0, "connection refused"), ApiError(503, "starting"), ApiError(429, "later"), ApiError(504, "slow")]
    server = Server(*away, {"metadata": {"uid": "1"}})
    assert jobs_of(server).find(MANIFEST) == {"metadata": {"uid": "1"}}
    assert len(server.calls) == 5


def test_api_server_that_stays_away_ends_the_step() -> None:
    with pytest.raises(TrainyardError, match=r"was unavailable for 600 s.*adopts the job"):
        jobs_of(Server(ApiError(0, "connection refused"))).find(MANIFEST)


def test_created_though_the_answer_was_lost() -> None:
    made = {"kind": "PyTorchJob", "metadata": {"uid": "1"}, "status": {}}
    server = Server(ApiError(404, ""), ApiError(0, "reset"), ApiError(409, "already exists"), made)
    assert jobs_of(server).adopt(MANIFEST) == made
    assert [method for method, _ in server.calls] == ["GET", "POST", "POST", "GET"]


def test_refused_job_is_reported_with_the_servers_words() -> None:
    server = Server(ApiError(404, ""), ApiError(403, "ValidatingAdmissionPolicy 'trainyard-p07' denied request: no"))
    with pytest.raises(TrainyardError, match="PyTorchJob mnist-1 was refused: ValidatingAdmissionPolicy"):
        jobs_of(server).adopt(MANIFEST)


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),  # its node is emptied
        ({"metadata": {}}, False),  # its run is stopped: Argo signals the container
        (ApiError(404, "not found"), False),
    ],
)
def test_only_a_stopped_run_takes_the_job_along(answer: Any, taken: bool) -> None:
    assert stopping.evicted(jobs_of(Server(answer)), "mnist-1-train-1") == taken


def pod(role: str, index: int, **status: Any) -> dict[str, Any]:
    labels = {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": str(index)}
    meta = {"name": f"mnist-1-{role}-{index}", "uid": f"{role}{index}", "labels": labels}
    return {"metadata": meta, "spec": {"containers": [{"name": "pytorch"}]}, "status": status}


def ended(code: int, at: str, reason: str = "Error") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "finishedAt": f"2026-01-01T00:00:0{at}Z", "reason": reason}}
    return {"phase": "Failed", "containerStatuses": [{"name": "pytorch", "state": state}]}


def test_message_is_of_the_rank_that_failed_first() -> None:
    found = [pod("worker", 1, **ended(1, "3", "OOMKilled")), pod("master", 0, **ended(1, "5"))]
    first = pods.first_failure(found)
    assert first and (first.rank, first.why) == ("worker-1", "exit code 1, OOMKilled")
    job = {"metadata": {"uid": "u"}, "kind": "PyTorchJob"}
    failed = {"conditions": [{"type": "Failed", "status": "True", "message": "backoff limit"}]}
    server = Server({**job, "status": failed}, {"items": found})
    with pytest.raises(TrainyardError) as error:
        Watch(jobs_of(server), MANIFEST, "u").to_end()
    assert str(error.value) == (
        "PyTorchJob mnist-1 failed: worker-1 (exit code 1, OOMKilled) said: "
        "epoch 1 | loss is NaN | RuntimeError: stop at step 17."
    )


def test_a_command_that_the_image_lacks_is_reported_in_the_runtime_s_words() -> None:
    found = pod("worker", 1, **ended(128, "3", "StartError"))
    terminated = found["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated["message"] = 'runc create failed: unable to start container process: exec: "python": not found in $PATH'
    failed = {"conditions": [{"type": "Failed", "status": "True", "message": "backoff limit"}]}
    server = Server({"metadata": {"uid": "u"}, "kind": "PyTorchJob", "status": failed}, {"items": [found]})
    with pytest.raises(TrainyardError, match=r"worker-1 can't be started: exec: \"python\": not found in \$PATH"):
        Watch(jobs_of(server), MANIFEST, "u").to_end()


def test_evicted_pod_counts_as_failed() -> None:
    found = pods.first_failure([pod("worker", 0, phase="Failed", reason="Evicted", message="low on memory")])
    assert found and found.why == "Evicted: low on memory"


def test_image_that_never_comes_ends_the_wait() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    stuck = pod("master", 0, phase="Pending", containerStatuses=[{"name": "pytorch", "state": {"waiting": waiting}}])
    job = {"metadata": {"uid": "u"}, "kind": "PyTorchJob", "status": {}}

    class Stuck(Server):
        def call(self, method: str, path: str, body: Any = None, **_: Any) -> Any:
            self.calls.append((method, path))
            return {"items": [stuck]} if path.endswith("/pods") else {"items": []} if path.endswith("/events") else job

    server = Stuck(None)
    with pytest.raises(TrainyardError, match="can't start: master-0: ImagePullBackOff: not found"):
        Watch(jobs_of(server), MANIFEST, "u").to_end()
    assert ("DELETE", "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/mnist-1") in server.calls


@pytest.mark.parametrize(
    ("text", "for_good"),
    [
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', True),
        (
            "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'trainyard-p03' with binding 'x' denied request: no",
            True,
        ),
        ('worker pod created failed: Pod "a" is invalid: spec.containers[0].image: Required value', True),
        ('pods "a" is forbidden: maximum memory usage per Container is 8Gi, but limit is 9Gi', True),
        ('pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=9, limited: pods=9', False),
        ('pods "a" is forbidden: error looking up service account vision/training: not found', False),
        ("Error creating: Post https://10.96.0.1: dial tcp: connection refused", False),
        ("PodGroup vision:mnist unschedulable, reason: queue is full", False),
    ],
)
def test_refusals_for_good_are_told_from_passing_ones(text: str, for_good: bool) -> None:
    assert bool(refusals.refusal([{"message": text}])) == for_good


@pytest.mark.parametrize("code", ["", "NoSuchBucket"])  # MinIO knows no bucket for a moment after its start
def test_store_that_is_away_for_two_minutes_costs_no_training(capsys: pytest.CaptureFixture[str], code: str) -> None:
    waited: list[float] = []

    def action() -> str:
        if sum(waited) < 120:
            error = ConnectionError("refused")
            error.code = code  # type: ignore[attr-defined]
            raise error
        return "there"

    assert results.patiently(action, "s3://runs/a", waited.append) == "there"
    assert "the store does not answer" in capsys.readouterr().out


def test_store_that_refuses_is_not_asked_again() -> None:
    error = ConnectionError("no")
    error.code = "AccessDenied"  # type: ignore[attr-defined]

    def action() -> None:
        raise error

    with pytest.raises(TrainyardError, match=r"the store refuses \(AccessDenied\)"):
        results.patiently(action, "s3://runs/a", lambda _: pytest.fail("waited"))


def test_job_without_results_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="left no results"):
        results.fetch("s3://runs/vision/x", tmp_path / "model", {"TRAINYARD_BUCKETS": str(tmp_path)})


def test_metrics_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "metrics.json"
    file.write_text('{"accuracy": 0.9, "device": "cpu", "epochs": 2, "nodes": [1]}')
    assert component._numbers(file) == {"accuracy": 0.9, "epochs": 2}
    file.write_text("{")
    with pytest.raises(TrainyardError, match="is not JSON"):
        component._numbers(file)


def test_the_contract_is_read_where_the_release_is() -> None:
    asked: list[str] = []

    def call(method: str, path: str, *_: Any, **__: Any) -> Any:
        asked.append(path)
        raise ApiError(403, "forbidden")

    jobs = Jobs(SimpleNamespace(call=call), "vision")  # type: ignore[arg-type]
    for env, place in (({}, "trainyard-system"), ({"TRAINYARD_SYSTEM": "platform"}, "platform")):
        with pytest.raises(TrainyardError, match="the platform's contract can't be read: forbidden"):
            cluster.team_config(jobs, request_of(), env)
        assert asked[-1] == f"/api/v1/namespaces/{place}/configmaps/trainyard-contract"
