"""The API server's verdict on an object and on its child objects, including manifests inside a workflow."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.errors import TrainyardError, UsageError
from trainyard.policy import cel
from trainyard.policy.lint import workflow_pods
from trainyard.policy.lint.pods import mapping
from trainyard.policy.lint.rights import group_of, plural
from trainyard.policy.rules import PREFIX
from trainyard.yaml_lines import documents
from trainyard_dev.apiserver import Identity
from trainyard_dev.policy.check import Site, Verdict

Object = dict[str, Any]
FILLED_IN = re.compile(r"\{\{.*?\}\}", re.DOTALL)
RULE, OURS = f"ValidatingAdmissionPolicy '{PREFIX}", "a rule"
WEBHOOK, VOLCANO = "job.volcano.sh", "Volcano"
SAMPLE = "1"  # value for Argo's placeholders: valid as a number and as part of a name
AGENT = ("watch", "list", "patch")  # what Argo's agent does with a WorkflowTaskSet
OF_THE_SERVER = ("uid", "creationTimestamp", "managedFields", "generation", "resourceVersion", "selfLink")
WORKFLOWS = ("Workflow", "CronWorkflow", "WorkflowTemplate")


@dataclass(frozen=True)
class ServerVerdict:
    """`refusals`: guards that refused. `lacks`: missing rights and objects, so that it would fail or never start."""

    refusals: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the object, or a child object, is refused."""
        return bool(self.refusals)


class MemberClient:
    """Sends requests as the team's member, and as the controllers that make child objects.

    Args:
        fills: the server fills in what members leave open, and child objects are made of what it would store.
    """

    def __init__(self, site: Site, contract: Contract, team: Team, fills: bool = False) -> None:
        self.site, self.contract, self.team, self.fills = site, contract, team, fills
        self.account = contract.parameters["pipelineServiceAccount"]
        self.steps = Identity.account(team.name, self.account)
        self.argo = Identity(contract.parameters["teamWorkflowController"] + team.name)

    def ask(self, objects: list[Object]) -> ServerVerdict:
        """Submits all objects, one after the other."""
        refusals: list[str] = []
        lacks: list[str] = []
        for obj in json.loads(json.dumps(objects, default=str)):
            if not isinstance(obj.get("metadata") or {}, dict):
                refusals.append("schema")
                continue
            obj["metadata"] = obj.get("metadata") or {}
            obj = self._stored(obj) if self.fills else obj
            refusals += self._plain(obj)
            if obj.get("kind") in WORKFLOWS and isinstance(obj.get("spec"), dict):
                try:
                    refusals += self._of_workflow(obj)
                    lacks += self._lacking(obj)
                except (AttributeError, KeyError, TypeError, ValueError):
                    refusals.append("schema")  # of a shape from which Argo makes nothing
        return ServerVerdict(tuple(sorted(set(refusals))), tuple(sorted(set(lacks))))

    def _stored(self, obj: Object) -> Object:
        """The object as the server would store it; unchanged where it is refused."""
        sent = obj | {"metadata": {"namespace": self.team.name, **obj["metadata"]}}
        try:
            path, query = self.site.server.path(sent), {"dryRun": "All"}
            answer = self.site.server.call("POST", path, sent, identity=self.site.member, query=query)
        except TrainyardError:
            return obj
        if not answer.ok:
            return obj
        made = {key: value for key, value in answer.body.items() if key != "status"}
        meta = {key: value for key, value in made["metadata"].items() if key not in OF_THE_SERVER}
        if "generateName" in obj["metadata"]:
            meta.pop("name", None)
        return {**made, "metadata": meta}

    def _plain(self, obj: Object) -> list[str]:
        """Sends the object as kubectl does, with strict field validation."""
        try:
            found = _who(self.site.check([obj]))
        except UsageError:
            return ["schema"]
        if not found:
            query = {"dryRun": "All", "fieldValidation": "Strict"}
            server, who = self.site.server, self.site.member
            found = [] if server.call("POST", server.path(obj), obj, identity=who, query=query).ok else ["schema"]
        return found

    def _as(self, obj: Object, who: Identity) -> list[str]:
        obj["metadata"] = {"namespace": self.team.name, "name": "made", **(obj.get("metadata") or {})}
        return _who(replace(self.site, member=who).check([obj]))

    def _of_workflow(self, obj: Object) -> Iterator[str]:
        spec = self._spec(obj)
        for claim in spec.get("volumeClaimTemplates") or []:
            claim = json.loads(json.dumps(claim))
            claim.get("metadata", {}).pop("namespace", None)
            yield from self._as({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}, self.argo)
        for template in spec.get("templates") or []:
            for made in workflow_pods.of_template(spec, template, self.team, self.contract):
                yield from self._as(self._complete(made, spec, template), self.argo)
            resource = mapping(template.get("resource"))
            if resource.get("action") == "create" and isinstance(resource.get("manifest"), str):
                for inside in self._manifests(resource["manifest"]):
                    yield from self._as(inside, self.steps)

    def _spec(self, obj: Object) -> Object:
        spec = obj["spec"]["workflowSpec"] if obj["kind"] == "CronWorkflow" else obj["spec"]
        placed: Object = cel.place(spec)
        return placed

    def _complete(self, made: Object, spec: Object, template: Object) -> Object:
        """The pod as Argo would send it: with volumes of claims and artifacts, and sample values for placeholders."""
        pod: Object = json.loads(FILLED_IN.sub(SAMPLE, json.dumps(made)))
        inner = pod["spec"]
        inner.setdefault("restartPolicy", "Never")
        known = {one["name"] for one in inner["volumes"]}
        claims = {one["metadata"]["name"] for one in spec.get("volumeClaimTemplates") or []} - known
        inner["volumes"] += [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(claims)]
        for container in [*inner["containers"], *inner["initContainers"]]:
            for key in ("source", "mirrorVolumeMounts"):
                container.pop(key, None)
        if not inner["initContainers"]:
            del inner["initContainers"]
        return pod

    def _manifests(self, text: str) -> list[Object]:
        try:
            found = documents(FILLED_IN.sub(SAMPLE, text), "manifest")
        except UsageError:
            return []
        return [one.data for one in found if isinstance(one.data, dict)]

    def _lacking(self, obj: Object) -> Iterator[str]:
        spec = self._spec(obj)
        yield from self._referred(spec.get("workflowTemplateRef"))
        for template in spec.get("templates") or []:
            if "http" in template or "plugin" in template:
                yield from self._rights("argoproj.io", "workflowtasksets", AGENT)
            resource = mapping(template.get("resource"))
            if resource.get("action") in ("apply", "patch", "replace"):
                inside = self._manifests(str(resource.get("manifest") or "")) or [{"apiVersion": "v1", "kind": "Pod"}]
                for one in inside:
                    yield from self._rights(group_of(one), plural(group_of(one), str(one.get("kind"))), ("patch",))
            steps = [*(mapping(template.get("dag")).get("tasks") or [])]
            steps += [step for group in template.get("steps") or [] for step in group]
            for step in steps:
                yield from self._referred(step.get("templateRef"))

    def _rights(self, group: str, resource: str, verbs: tuple[str, ...]) -> Iterator[str]:
        for verb in verbs:
            asked = {"verb": verb, "group": group, "version": "*", "resource": resource, "namespace": self.team.name}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}}
            groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{self.team.name}"]
            spec = {"user": self.steps.user, "groups": groups, "resourceAttributes": asked}
            if not self.site.server.create(review | {"spec": spec}).body["status"]["allowed"]:
                yield f"{verb} {resource}"

    def _referred(self, given: Any) -> Iterator[str]:
        name = mapping(given).get("name")
        if not name:
            return
        wide = mapping(given).get("clusterScope") in (True, "true")
        where = "clusterworkflowtemplates" if wide else f"namespaces/{self.team.name}/workflowtemplates"
        found = self.site.server.call("GET", f"/apis/argoproj.io/v1alpha1/{where}/{FILLED_IN.sub(SAMPLE, str(name))}")
        if not found.ok:
            yield "a template"


def _who(verdicts: list[Verdict]) -> list[str]:
    """The guards that refused: our rules, Volcano's webhook, or a part of the API server; of several rules, any one."""
    found = []
    for one in (one for verdict in verdicts for one in verdict.findings if one.refuses):
        found.append(OURS if RULE in one.message else VOLCANO if WEBHOOK in one.message else one.by)
    return found
