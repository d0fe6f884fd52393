"""What once went wrong with Argo on a cluster of several teams, each as a test."""

from typing import Any

from pipeline_harness import PipelineHarness
from test_teams import two_steps

from trainyard_dev.apiserver import Identity


def config_map(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}}


def test_steps_pass_pod_security_and_share_one_queue(harness: PipelineHarness) -> None:
    """Argo's own containers too; Volcano makes one group of a workflow's pods, so all must say the same."""
    labels = harness.server.call("GET", "/api/v1/namespaces/vision").body["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    run = harness.run(two_steps, {"text": "traps"}, queue="training", cache=False)
    assert run.phase == "Succeeded", run.message
    pods = [life.pod for life in harness.kubelet.of(run.name)]
    assert len(pods) == 2
    for pod in pods:
        assert pod["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "training"
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["labels"]["trainyard.io/api-access"] == "true"


def test_a_steps_account_notes_results_and_reads_no_secrets(harness: PipelineHarness) -> None:
    pipeline = Identity.account("vision", "pipeline")
    secrets = harness.server.call("GET", "/api/v1/namespaces/vision/secrets/trainyard-s3", identity=pipeline)
    assert secrets.status == 403
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "vision"},
        "spec": {"containers": []},
    }
    assert harness.server.create(pod, identity=pipeline).status == 403
    other = harness.server.call("GET", "/api/v1/namespaces/speech/pods", identity=pipeline)
    assert other.status == 403


def test_the_controller_writes_its_teams_caches_only(harness: PipelineHarness) -> None:
    """A workflow names its cache: without a rule it could have the controller write any ConfigMap of the platform."""
    namespace = harness.controller.namespace
    argo = Identity.account(namespace, "trainyard-workflow-controller-vision")
    assert harness.server.create(config_map(namespace, "vision.mine"), identity=argo, dry_run=True).ok
    for name in ("mine", "speech.mine"):
        refused = harness.server.create(config_map(namespace, name), identity=argo, dry_run=True)
        assert "Argo may change only caches of its own team, ConfigMaps named vision.<pipeline>" in refused.message
    path = f"/api/v1/namespaces/{namespace}/configmaps/trainyard-contract"
    held = harness.server.call("GET", path).body
    changed = harness.server.replace(held | {"data": {}}, identity=argo, dry_run=True)
    assert "Argo may change only caches of its own team" in changed.message


def test_another_teams_cache_is_refused(harness: PipelineHarness) -> None:
    workflow = harness.workflow(two_steps, {"text": "traps"})
    for template in workflow["spec"]["templates"]:
        if "memoize" in template:
            template["memoize"]["cache"]["configMap"]["name"] = "speech.two-steps.write"
    answer = harness.server.create(
        workflow, identity=Identity("somebody", ("vision-members", "system:authenticated")), dry_run=True
    )
    assert not answer.ok and "memoize" in answer.message, answer.message


def test_artifacts_stay_in_the_teams_folder(harness: PipelineHarness) -> None:
    run = harness.run(two_steps, {"text": "traps"}, cache=False, team="speech")
    for node in run.pods():
        keys = [one["s3"]["key"] for one in node["outputs"]["artifacts"]]
        assert keys and all(key.startswith(f"speech/pipelines/{run.name}/") for key in keys)
