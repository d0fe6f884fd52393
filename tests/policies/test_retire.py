"""The hook that ends the controller for all teams before those of teams begin, with the rights that it has."""

import pytest
from hook_api import SYSTEM, HookApi, due, granted

from rendering import one
from trainyard_agent.install import retire
from trainyard_agent.install.setup import Clock
from trainyard_agent.say import PlatformError
from trainyard_dev.apiserver import ApiServer

OLD = "trainyard-workflow-controller"
SPEC = {
    "selector": {"matchLabels": {"app": "old"}},
    "template": {"metadata": {"labels": {"app": "old"}}, "spec": {"containers": [{"name": "x", "image": "x/y:1"}]}},
}


def test_the_controller_for_all_teams_ends_before_those_of_teams_begin(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not [obj for obj in due(server) if obj["metadata"]["name"] == "trainyard-retire"]
    old = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": OLD, "namespace": SYSTEM}, "spec": SPEC}
    beside = old | {"metadata": {"name": f"{OLD}-vision", "namespace": SYSTEM}}
    path = server.path(old)
    assert server.create(old).ok and server.create(beside).ok
    hook = [obj for obj in due(server) if obj["metadata"]["name"] == "trainyard-retire"]
    job = one(hook, "Job", "trainyard-retire")
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][:3] == ["retire", "--deployment", OLD]
    rights = [obj for obj in hook if obj["kind"] in ("Role", "RoleBinding")]
    granted(server, rights)
    api = HookApi(server, "trainyard-retire")
    try:
        # Nobody collects garbage here: what Kubernetes does once the pods are gone is done by hand.
        assert retire.gone(api, f"{path}/{OLD}") == "its pods are ending"
        left = server.call("GET", f"{path}/{OLD}").body["metadata"]
        assert left["finalizers"] == ["foregroundDeletion"]
        assert retire.gone(api, f"{path}/{OLD}") == "its pods are ending"
        assert server.patch(old, [{"op": "remove", "path": "/metadata/finalizers"}]).ok
        retire.end(api, OLD, Clock(20))
        assert f"the end of Deployment {OLD}: ready" in capsys.readouterr().out
        with pytest.raises(PlatformError, match=rf"{OLD}-vision can't be ended: .*cannot get resource"):
            retire.end(api, f"{OLD}-vision", Clock(20))
    finally:
        for obj in [*rights, beside]:
            server.call("DELETE", f"{server.path(obj)}/{obj['metadata']['name']}")
