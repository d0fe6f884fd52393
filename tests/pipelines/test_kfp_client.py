"""kfp's own client against the service, on the real platform: as its users write it, as members of teams."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kfp_service
import pytest
from kfp import compiler, dsl
from kfp.client import Client
from kfp_server_api import ApiException
from kfp_service import KfpService
from pipeline_harness import PipelineHarness

from trainyard.paths import ROOT
from waiting import wait

IMAGE = "site.invalid/trainyard/pipeline:0.4.0"
ENDED = ("SUCCEEDED", "FAILED")


@dsl.component(base_image=IMAGE)
def score(factor: float, metrics: dsl.Output[dsl.Metrics]) -> float:
    metrics.log_metric("accuracy", 0.5 * factor)
    print("the factor is", factor)
    return 2 * factor


@dsl.component(base_image=IMAGE)
def fail(word: str) -> str:
    raise ValueError(f"no {word} today")


@dsl.component(base_image=IMAGE)
def last(seconds: int) -> None:
    import time

    time.sleep(seconds)


@dsl.pipeline(name="scores")
def scores(factor: float = 1.5) -> None:
    score(factor=factor)


@dsl.pipeline(name="failing")
def failing(word: str = "luck") -> None:
    fail(word=word)


@dsl.pipeline(name="lasting")
def lasting(seconds: int = 120) -> None:
    last(seconds=seconds)


@pytest.fixture(scope="module")
def service(harness: PipelineHarness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KfpService]:
    members = {"ada": ("vision",), "eve": ("speech",), "kim": ("vision", "speech"), "tom": ()}
    folder = tmp_path_factory.mktemp("kfp")
    with pytest.MonkeyPatch.context() as patch, kfp_service.running(harness, folder, members) as found:
        patch.setattr(Client, "_LOCAL_KFP_CONTEXT", str(folder / "context.json"))
        yield found


@pytest.fixture
def ada(service: KfpService) -> Client:
    return service.client("ada")


@pytest.fixture(scope="module")
def package(service: KfpService) -> Path:
    file = service.folder / "scores.yaml"
    compiler.Compiler().compile(scores, str(file))
    return file


def _refused(code: int, call: Any, *words: str) -> None:
    with pytest.raises(ApiException) as error:
        call()
    said = json.loads(error.value.body)["message"]
    assert error.value.status == code and all(word in said for word in words), (error.value.status, said)


def test_a_run_from_a_function_to_its_metric(ada: Client) -> None:
    assert ada.get_kfp_healthz().multi_user is True
    made = ada.create_run_from_pipeline_func(scores, arguments={"factor": 1.8}, run_name="an äußerst good run",
                                             experiment_name="first tries", enable_caching=False)  # fmt: skip
    done = ada.wait_for_run_completion(made.run_id, timeout=120, sleep_duration=1)
    assert (done.state, done.display_name) == ("SUCCEEDED", "an äußerst good run")
    assert done.runtime_config.parameters == {"factor": 1.8}
    assert done.finished_at >= done.created_at and [one.state for one in done.state_history][-1] == "SUCCEEDED"
    entries = done.plugins_output["metrics"].entries
    assert {name: one.value for name, one in entries.items()} == {"score.accuracy": 0.9, "score.Output": 3.6}
    (task,) = done.run_details.task_details
    assert (task.display_name, task.state) == ("scores/score", "SUCCEEDED") or task.state == "SUCCEEDED"
    experiment = ada.get_experiment(experiment_id=done.experiment_id)
    assert (experiment.display_name, experiment.namespace) == ("first tries", "vision")
    (artifact,) = task.outputs["metrics"].artifact_ids
    api = ada._run_api.api_client
    found = api.call_api(f"/apis/v2beta1/artifacts/{artifact}", "GET", response_type="object",
                         auth_settings=["Bearer"], _return_http_data_only=True)  # fmt: skip
    assert found["metadata"] == {"accuracy": 0.9} and found["artifact_type"] == "system.Metrics"


def test_pipelines_and_versions(ada: Client, package: Path) -> None:
    made = ada.upload_pipeline(str(package), "my scores", description="of models")
    assert ada.get_pipeline_id("my scores") == made.pipeline_id and made.namespace == "vision"
    _refused(409, lambda: ada.upload_pipeline(str(package), "my scores"), "my scores already exists", "new version")
    second = ada.upload_pipeline_version(str(package), "second", pipeline_id=made.pipeline_id)
    third = ada.upload_pipeline_version_from_pipeline_func(scores, "third", pipeline_name="my scores")
    found = ada.list_pipeline_versions(made.pipeline_id, sort_by="display_name", page_size=2)
    assert [one.display_name for one in found.pipeline_versions] == ["my scores", "second"] and found.total_size == 3
    rest = ada.list_pipeline_versions(
        made.pipeline_id, sort_by="display_name", page_size=2, page_token=found.next_page_token
    )
    assert [one.display_name for one in rest.pipeline_versions] == ["third"] and not rest.next_page_token
    spec = ada.get_pipeline_version(made.pipeline_id, second.pipeline_version_id).pipeline_spec
    assert spec["pipelineInfo"]["name"] == "scores"

    experiment, version = ada.create_experiment("versions").experiment_id, third.pipeline_version_id
    run = ada.run_pipeline(
        experiment, "of a version", pipeline_id=made.pipeline_id, version_id=version, params={"factor": 2}
    )
    assert run.pipeline_version_reference.pipeline_version_id == third.pipeline_version_id
    assert ada.wait_for_run_completion(run.run_id, 120, 1).state == "SUCCEEDED"

    _refused(400, lambda: ada.delete_pipeline(made.pipeline_id), "still has 3 versions")
    for one in (*found.pipeline_versions, third):
        ada.delete_pipeline_version(made.pipeline_id, one.pipeline_version_id)
    ada.delete_pipeline(made.pipeline_id)
    _refused(404, lambda: ada.get_pipeline(made.pipeline_id), "no pipeline")
    assert ada.get_pipeline_id("my scores") is None
    again = ada.upload_pipeline_from_pipeline_func(scores, pipeline_name="my scores")
    assert ada.get_pipeline(again.pipeline_id).display_name == "my scores"
    assert "my scores" in [one.display_name for one in ada.list_pipelines().pipelines]


def test_why_a_run_failed_and_its_retry(ada: Client) -> None:
    run = ada.create_run_from_pipeline_func(failing, experiment_name="failures").run_id
    done = ada.wait_for_run_completion(run, 120, 1)
    assert done.state == "FAILED" and "ValueError: no luck today" in done.error.message
    assert done.run_details.task_details[0].error.message in done.error.message
    ada._run_api.run_service_retry_run(run)
    wait(lambda: ada.get_run(run).state == "RUNNING", "the retry")
    assert ada.wait_for_run_completion(run, 120, 1).state == "FAILED"


def test_lists_are_filtered_sorted_and_paged(ada: Client) -> None:
    experiment = ada.create_experiment("lists", description="of runs").experiment_id
    names = [f"list {number}" for number in range(5)]
    runs = {
        name: ada.create_run_from_pipeline_func(scores, run_name=name, experiment_id=experiment).run_id
        for name in names
    }
    seen, token = list[str](), ""
    while True:
        page = ada.list_runs(experiment_id=experiment, page_size=2, page_token=token, sort_by="display_name desc")
        assert page.total_size == 5
        seen += [one.display_name for one in page.runs]
        if not (token := page.next_page_token):
            break
    assert seen == names[::-1]

    def filtered(operation: Any, value: dict[str, Any], key: str = "display_name") -> list[str]:
        asked = json.dumps({"predicates": [{"operation": operation, "key": key, **value}]})
        return sorted(one.display_name for one in ada.list_runs(experiment_id=experiment, filter=asked).runs or [])

    assert filtered("EQUALS", {"stringValue": "list 3"}) == filtered(1, {"string_value": "list 3"}) == ["list 3"]
    assert filtered("IS_SUBSTRING", {"stringValue": "LIST"}) == names
    assert filtered("IN", {"stringValues": {"values": ["list 1", "list 4", "x"]}}) == ["list 1", "list 4"]
    assert filtered("GREATER_THAN", {"timestampValue": "2026-01-01T00:00:00Z"}, "created_at") == names
    ada.archive_run(runs["list 2"])
    assert filtered("EQUALS", {"stringValue": "ARCHIVED"}, "storage_state") == ["list 2"]
    ada.unarchive_run(runs["list 2"])
    assert filtered("EQUALS", {"stringValue": "ARCHIVED"}, "storage_state") == []
    _refused(400, lambda: filtered("LIKE", {"stringValue": "x"}), "invalid operation 'LIKE'")
    _refused(400, lambda: filtered("EQUALS", {"stringValue": "x"}, "owner"), "'owner' can't be filtered by")
    _refused(400, lambda: ada.list_runs(sort_by="size"), "invalid sort_by 'size'")
    _refused(400, lambda: ada.list_runs(page_token="x"), "invalid page_token")

    _refused(400, lambda: ada.delete_experiment(experiment), "still has 5 runs")
    ada.archive_experiment(experiment)
    assert ada.get_run(runs["list 1"]).storage_state == "ARCHIVED"
    _refused(400, lambda: ada.run_pipeline(experiment, "x", pipeline_package_path=_file(ada)), "experiment is archived")
    ada.unarchive_experiment(experiment)
    for run in runs.values():
        ada.delete_run(run)
    _refused(404, lambda: ada.get_run(runs["list 1"]), "no run")
    ada.delete_experiment(experiment)
    assert "lists" not in [one.display_name for one in ada.list_experiments(page_size=100).experiments]


def test_former_names_and_settings_of_the_client(service: KfpService, ada: Client, package: Path) -> None:
    run = ada.create_run_from_pipeline_package(str(package), arguments={"factor": 1}, experiment_name="former names")
    ada.set_user_namespace("vision")
    assert service.client("ada").get_user_namespace() == "vision"
    ada.set_user_namespace("")
    job = ada.create_recurring_run(run.run_info.experiment_id, "job", interval_second=3600,
                                   pipeline_package_path=str(package)).recurring_run_id  # fmt: skip
    ada.disable_job(job_id=job)
    assert ada.get_recurring_run(job).status == "DISABLED"
    ada.enable_job(job_id=job)
    assert ada.get_recurring_run(job).status == "ENABLED"
    ada.delete_job(job_id=job)
    _refused(404, lambda: ada.get_recurring_run(job), "no recurring run")


def _file(client: Client) -> str:
    file = Path(Client._LOCAL_KFP_CONTEXT).with_name("scores.yaml")
    compiler.Compiler().compile(scores, str(file))
    return str(file)


def test_a_run_is_terminated(ada: Client) -> None:
    run = ada.create_run_from_pipeline_func(lasting).run_id
    wait(lambda: ada.get_run(run).state == "RUNNING", "the run")
    ada.terminate_run(run)
    done = ada.wait_for_run_completion(run, 60, 1)
    assert done.state == "FAILED" and done.error.message == "the run was stopped"
    _refused(400, lambda: ada.terminate_run(run), "has already ended")


def test_recurring_runs(ada: Client, package: Path) -> None:
    experiment = ada.create_experiment("nights").experiment_id
    nightly = {"cron_expression": "0 30 4 * * *", "max_concurrency": 2, "no_catchup": True, "params": {"factor": 3}}
    made = ada.create_recurring_run(experiment, "Nightly scores", pipeline_package_path=str(package), **nightly)
    found = ada.get_recurring_run(made.recurring_run_id)
    assert (found.display_name, found.status, found.max_concurrency) == ("Nightly scores", "ENABLED", "2")
    assert found.trigger.cron_schedule.cron == "0 30 4 * * *" and found.runtime_config.parameters["factor"] == 3
    ada.disable_recurring_run(made.recurring_run_id)
    assert ada.get_recurring_run(made.recurring_run_id).status == "DISABLED"
    ada.enable_recurring_run(made.recurring_run_id)
    often = ada.create_recurring_run(
        experiment, "often", interval_second=1800, pipeline_package_path=str(package), enabled=False
    )
    listed = ada.list_recurring_runs(experiment_id=experiment, sort_by="display_name").recurring_runs
    assert [(one.display_name, one.status) for one in listed] == [("Nightly scores", "ENABLED"), ("often", "DISABLED")]

    def create(**times: Any) -> Any:
        return ada.create_recurring_run(experiment, "x", pipeline_package_path=str(package), **times)

    _refused(400, lambda: create(cron_expression="5 * * * * *"), "second 0")
    _refused(400, lambda: create(cron_expression="0 61 * * * *"), "invalid minute: 61")
    _refused(400, lambda: create(interval_second=90), "whole number of minutes")
    _refused(400, lambda: create(interval_second=4200), "does not divide a day")
    for one in (made, often):
        ada.delete_recurring_run(one.recurring_run_id)
    _refused(404, lambda: ada.get_recurring_run(made.recurring_run_id), "no recurring run")


def test_people_of_other_teams_and_of_several(service: KfpService, ada: Client, package: Path) -> None:
    run = ada.create_run_from_pipeline_func(scores, run_name="ada's", experiment_name="ours").run_id
    pipeline = ada.upload_pipeline(str(package), "ada's own").pipeline_id
    eve, kim = service.client("eve"), service.client("kim")
    experiment = ada.get_run(run).experiment_id
    for call in (
        lambda: eve.get_run(run),
        lambda: eve.terminate_run(run),
        lambda: eve.archive_run(run),
        lambda: eve.delete_run(run),
        lambda: eve._run_api.run_service_retry_run(run),
        lambda: eve.list_runs(namespace="vision"),
        lambda: eve.list_runs(experiment_id=experiment),
        lambda: eve.get_experiment(experiment_id=experiment),
        lambda: eve.create_experiment("x", namespace="vision"),
        lambda: eve.get_pipeline(pipeline),
        lambda: eve.delete_pipeline(pipeline),
        lambda: eve.list_pipeline_versions(pipeline),
        lambda: eve.upload_pipeline(str(package), "x", namespace="vision"),
        lambda: eve.list_recurring_runs(namespace="vision"),
    ):
        _refused(403, call, "forbidden")
    assert "ada's" not in [one.display_name for one in eve.list_runs().runs or []]
    assert "ada's own" not in [one.display_name for one in eve.list_pipelines().pipelines or []]
    _refused(400, lambda: kim.create_experiment("mine"), "you belong to speech, vision", "namespace=TEAM")
    assert kim.create_experiment("mine", namespace="speech").namespace == "speech"
    assert {"ada's"} <= {one.display_name for one in kim.list_runs(sort_by="created_at desc").runs}
    _refused(400, lambda: service.client("tom").create_experiment("x"), "you belong to no team")
    for token in ("", "x.y.z", ada._existing_config.api_key["authorization"][:-4] + "AAAA"):
        client = Client(host=service.url, existing_token=token or None, namespace="vision")
        _refused(401, lambda client=client: client.list_runs(), "token")


def test_the_command_line(service: KfpService, package: Path, tmp_path: Path) -> None:
    """`kfp` has no option for a token, so it goes through `trainyard kfp proxy` or, here, a header of its context."""
    context = tmp_path / ".config" / "kfp" / "context.json"
    context.parent.mkdir(parents=True)
    header = {"client_authentication_header_name": "authorization", "namespace": "vision",
              "client_authentication_header_value": f"Bearer {service.tokens['ada']}"}  # fmt: skip
    context.write_text(json.dumps(header))
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}

    def kfp(*words: str) -> Any:
        argv = [Path(sys.executable).with_name("kfp"), "--endpoint", service.url, "--output", "json", *words]
        done = subprocess.run(argv, input="y\n", capture_output=True, text=True, env=env, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        start = re.search(r"^[\[{]$", done.stdout, re.MULTILINE)
        return json.loads(done.stdout[start.start() :]) if start else done.stdout

    run = kfp("run", "create", "-e", "by hand", "-r", "typed", "-f", str(package), "factor=2.5")
    assert run["display_name"] == "typed" and kfp("run", "get", run["run_id"])["run_id"] == run["run_id"]
    assert service.client("ada").get_run(run["run_id"]).runtime_config.parameters == {"factor": 2.5}
    assert "typed" in [one["display_name"] for one in kfp("run", "list", "--max-size", "100")]
    pipeline = kfp("pipeline", "create", "-p", "typed too", str(package))["pipeline_id"]
    version = kfp("pipeline", "create-version", str(package), "-v", "v2", "-p", pipeline)["pipeline_version_id"]
    assert {one["display_name"] for one in kfp("pipeline", "list-versions", pipeline)} == {"typed too", "v2"}
    kfp("pipeline", "delete-version", pipeline, version)
    kfp("experiment", "create", "empty")
    assert "empty" in [one["display_name"] for one in kfp("experiment", "list", "--max-size", "100")]


def test_every_method_of_the_client_is_in_the_table() -> None:
    """A method that a new version of kfp brings is noticed here; one that is listed as working is called above."""
    public = {name for name in vars(Client) if not name.startswith("_") and callable(getattr(Client, name))}
    rows = re.findall(r"^\| `(\w+)` \| (works|refused)", (ROOT / "docs" / "kfp-client.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == public
    called = Path(__file__).read_text()
    assert [name for name, word in rows if word == "works" and f".{name}(" not in called] == []
