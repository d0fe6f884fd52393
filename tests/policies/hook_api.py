"""The release's hooks as the tests run them: their objects, their rights, their client."""

import time
from typing import Any

from rights import may

from rendering import Objects, one
from trainyard.chart import helm
from trainyard_agent.api import Api, ApiError
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.client import Identity
from trainyard_dev.chart import package, parts
from trainyard_dev.versions import load

SYSTEM = "trainyard-system"


class HookApi(Api):
    """The hook's client with its pod's account, over the test's connection."""

    def __init__(self, server: ApiServer, account: str) -> None:
        self.server, self.identity = server, Identity.account(SYSTEM, account)

    @property
    def namespace(self) -> str:
        return SYSTEM

    def call(self, method: str, path: str, body: Any = None, *, content: str = "application/json",
             query: dict[str, str] | None = None, timeout: float = 15.0) -> dict[str, Any]:  # fmt: skip
        answer = self.server.call(method, path, body, identity=self.identity, content=content, query=query)
        if not answer.ok:
            raise ApiError(answer.status, answer.message)
        return answer.body


def due(server: ApiServer) -> Objects:
    """The hook objects that `helm upgrade` renders, which looks at the cluster."""
    text = helm.call(
        "template", package.RELEASE, package.assembled(), "--namespace", SYSTEM, "--kubeconfig", server.kubeconfig,
        "--kube-version", load().kubernetes, "--dry-run=server", "--is-upgrade", "--values", parts.profile_file("kind"),
        "--set", "backup.enabled=true,backup.target.claim.size=1Gi",
    )  # fmt: skip
    return [obj for obj in helm.parse(text) if "helm.sh/hook" in obj["metadata"].get("annotations", {})]


def granted(server: ApiServer, rights: Objects) -> None:
    """Puts roles and bindings on the server, and waits until its authorizer, which watches them, has taken them in."""
    for obj in rights:
        answer = server.apply(obj)
        assert answer.ok, answer.message
    end = time.monotonic() + 20
    for binding in (obj for obj in rights if obj["kind"].endswith("Binding")):
        while not _known(server, one(rights, binding["roleRef"]["kind"], binding["roleRef"]["name"]), binding):
            assert time.monotonic() < end, f"{binding['metadata']['name']}: rights that were given are not answered for"
            time.sleep(0.05)


def _known(server: ApiServer, role: dict[str, Any], binding: dict[str, Any]) -> bool:
    """Whether the first account of the binding may do what the first rule of the role says."""
    who, rule = binding["subjects"][0], role["rules"][0]
    plural, slash, sub = rule["resources"][0].partition("/")
    resource = ".".join(filter(None, (plural, rule["apiGroups"][0]))) + slash + sub
    place, name = binding["metadata"].get("namespace", ""), rule.get("resourceNames", [""])[0]
    return may(server, Identity.account(who["namespace"], who["name"]), rule["verbs"][0], resource, place, name)
