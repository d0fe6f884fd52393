"""The GitOps examples: structure, values, and what rendering without a cluster must not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.chart import helm
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.chart import options
from trainyard_dev.versions import load

GITOPS = ROOT / "manifests" / "gitops"
FILES = sorted(GITOPS.rglob("*.yaml"))
Object = dict[str, Any]
# Helm's hooks that Argo CD runs, by phase. It leaves out the others of an object, and objects with no other.
PHASES = {
    "pre-install": "PreSync", "pre-upgrade": "PreSync", "post-install": "PostSync", "post-upgrade": "PostSync",
    "pre-delete": "PreDelete", "post-delete": "PostDelete",
}  # fmt: skip
LEFT_OUT = {"test", "pre-rollback", "post-rollback"}


def documents(name: str) -> list[Object]:
    return [document for document in yaml.safe_load_all((GITOPS / name).read_text()) if document]


@pytest.fixture(scope="module")
def application() -> Object:
    (document,) = documents("argocd/application.yaml")
    return document


@pytest.fixture(scope="module")
def release() -> Object:
    (document,) = documents("flux/release.yaml")
    return document


def rendered(chart: Path, *more: str) -> dict[tuple[str, str, str], Object]:
    """The objects that a tool without a cluster renders from the example values, by kind, namespace and name."""
    values = [word for name in ("platform", "teams") for word in ("--values", GITOPS / "values" / f"{name}.yaml")]
    text = helm.call(
        "template", "trainyard", chart, "--namespace", helm.NAMESPACE, "--include-crds",
        "--kube-version", tools.tested_kubernetes().number, *values, *more,
    )  # fmt: skip
    return {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in helm.parse(text)}


@pytest.fixture(scope="module")
def first(chart: Path) -> dict[tuple[str, str, str], Object]:
    return rendered(chart)


# ---- shape


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(GITOPS).as_posix())
def test_every_file_is_yaml_without_doubled_keys(file: Path) -> None:
    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]  # type: ignore[no-untyped-call]
            assert len(keys) == len(set(keys)), f"{file.name}:{node.start_mark.line}: a key is there twice"
            return super().construct_mapping(node, deep)

    assert list(yaml.load_all(file.read_text(), Loader=Strict))


def test_application_has_what_the_chart_needs(application: Object) -> None:
    assert (application["apiVersion"], application["kind"]) == ("argoproj.io/v1alpha1", "Application")
    spec = application["spec"]
    assert set(spec) == {"project", "destination", "sources", "syncPolicy", "ignoreDifferences"}
    chart, site = spec["sources"]
    assert chart["chart"] == helm.NAME
    assert chart["targetRevision"] == load().raw["trainyard"]
    assert not chart["repoURL"].startswith("oci://"), "a source of type chart names its registry without a scheme"
    assert chart["helm"]["releaseName"] == application["metadata"]["name"] == helm.RELEASE
    prefix = f"${site['ref']}/"
    for file in chart["helm"]["valueFiles"]:
        assert (GITOPS / file.removeprefix(prefix)).exists()
    assert spec["destination"]["namespace"] == helm.NAMESPACE
    assert {"CreateNamespace=true", "ServerSideApply=true", "RespectIgnoreDifferences=true"} <= {
        *spec["syncPolicy"]["syncOptions"]
    }


def test_release_has_what_the_chart_needs(release: Object) -> None:
    assert release["apiVersion"] == "helm.toolkit.fluxcd.io/v2"
    spec = release["spec"]
    assert set(spec) == {
        "interval", "timeout", "chartRef", "releaseName", "targetNamespace", "storageNamespace", "valuesFrom",
        "install", "upgrade", "test", "driftDetection",
    }  # fmt: skip
    assert spec["install"]["crds"] == spec["upgrade"]["crds"] == "CreateReplace"
    assert spec["install"]["createNamespace"]
    assert spec["test"]["enable"]
    assert (spec["releaseName"], spec["targetNamespace"]) == (helm.RELEASE, helm.NAMESPACE)
    (source,) = documents("flux/source.yaml")
    assert (source["apiVersion"], source["kind"]) == ("source.toolkit.fluxcd.io/v1", "OCIRepository")
    assert source["metadata"]["name"] == spec["chartRef"]["name"]
    assert source["kind"] == spec["chartRef"]["kind"]
    assert source["spec"]["ref"]["tag"] == load().raw["trainyard"]
    assert source["spec"]["url"].startswith("oci://")
    assert source["spec"]["url"].endswith(f"/{helm.NAME}")


def test_a_changed_teams_file_changes_the_release() -> None:
    """Built by kustomize as Flux builds it: the release names the ConfigMaps with the hash of their content."""
    text = run([tools.binary("kubectl"), "kustomize", GITOPS / "flux"]).stdout
    objects = list(yaml.safe_load_all(text))
    (release,) = [obj for obj in objects if obj["kind"] == "HelmRelease"]
    built = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "ConfigMap"}
    names = [entry["name"] for entry in release["spec"]["valuesFrom"]]
    for name, file in zip(names, ("platform", "teams"), strict=True):
        assert name.startswith(f"trainyard-{file}-")
        assert built[name]["metadata"]["namespace"] == release["metadata"]["namespace"]
        assert built[name]["data"]["values.yaml"] == (GITOPS / f"values/{file}.yaml").read_text()


# ---- values


def test_example_values_make_the_example_teams(first: dict[tuple[str, str, str], Object]) -> None:
    teams = yaml.safe_load((GITOPS / "values/teams.yaml").read_text())["global"]["contract"]["teams"]
    for team in teams:
        assert ("Namespace", "", team["name"]) in first


def test_a_misspelt_value_of_the_examples_is_refused(chart: Path) -> None:
    with pytest.raises(Exception, match="podNetwork'"):
        rendered(chart, "--set", "nfs.podNetwork=x")


def test_without_a_cluster_the_api_server_comes_from_the_values(first: dict[tuple[str, str, str], Object]) -> None:
    platform = yaml.safe_load((GITOPS / "values/platform.yaml").read_text())
    (end,) = platform["global"]["contract"]["network"]["apiServer"]
    policy = first["NetworkPolicy", "vision", "allow-api"]
    blocks = [to["ipBlock"]["cidr"] for rule in policy["spec"]["egress"] for to in rule["to"]]
    assert blocks == [end["cidr"]]


# ---- what each rendering generates


def differing(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """JSON pointers of what differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differing(old.get(key), new.get(key), f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    elif old != new:
        yield path


# Options that generate something at each rendering; of the issuer as charts/login/README.md says for GitOps.
RANDOM = (
    *options.switched(*options.OPTIONS),
    "login.people[0].hash=$2a$10$" + "a" * 53,
    "login.tls.secret=login-tls",
    "login.notebooks.redirectURIs[0]=https://hub.example.org/hub/oauth_callback",
)


def test_what_is_random_is_ignored_by_argo_cd(application: Object, chart: Path) -> None:
    first, second = (rendered(chart, "--set", ",".join(RANDOM)) for _ in range(2))
    assert second.keys() == first.keys()
    random = {key: found for key in first if (found := set(differing(first[key], second[key])))}
    assert random, "generated credentials differ at each rendering"
    ignored: dict[str, set[str]] = {}
    for entry in application["spec"]["ignoreDifferences"]:
        ignored.setdefault(f"{entry['kind']}/{entry.get('name')}", set()).update(entry.get("jsonPointers", []))
    for (kind, _, name), pointers in random.items():
        left = pointers - ignored.get(f"{kind}/{name}", set())
        assert not left, f"{kind} {name}: each sync would change {left}"
        # A pointer to stringData alone would let the data through that the API server makes of it, and the other way.
        for pointer in pointers if kind == "Secret" else ():
            assert pointer.replace("/stringData/", "/data/") in ignored[f"{kind}/{name}"]
            assert pointer.replace("/data/", "/stringData/") in ignored[f"{kind}/{name}"]
    names = {f"{kind}/{name}" for kind, _, name in first}
    assert {key for key in ignored if not key.endswith("/None")} <= names, "names something that isn't there"


# ---- hooks and phases


def hooks(objects: dict[tuple[str, str, str], Object]) -> Iterator[tuple[Object, set[str], int]]:
    """Every hook with its kinds and its weight."""
    for obj in objects.values():
        marks = obj["metadata"].get("annotations") or {}
        if "helm.sh/hook" in marks:
            kinds = {kind.strip() for kind in marks["helm.sh/hook"].split(",")}
            yield obj, kinds, int(marks.get("helm.sh/hook-weight", 0))


def test_argo_cd_runs_every_hook_but_the_test(first: dict[tuple[str, str, str], Object]) -> None:
    found = list(hooks(first))
    for obj, kinds, _ in found:
        name = f"{obj['kind']} {obj['metadata']['name']}"
        assert kinds <= {*PHASES, *LEFT_OUT}, name
        assert kinds == {"test"} or kinds & set(PHASES), f"{name} would never run"
    assert {PHASES[kind] for _, kinds, _ in found for kind in kinds & set(PHASES)} >= {"PreSync", "PostSync"}
    assert not [
        obj for obj in first.values() if "argocd.argoproj.io/hook" in (obj["metadata"].get("annotations") or {})
    ], "one hook of Argo CD's own makes it leave out all of Helm's"


def needs(job: Object) -> Iterator[tuple[str, str]]:
    """Kind and name of what a job's pod can't start without."""
    spec = job["spec"]["template"]["spec"]
    yield "ServiceAccount", spec.get("serviceAccountName", "default")
    for volume in spec.get("volumes", []):
        if config := volume.get("configMap"):
            yield from [] if config.get("optional") else [("ConfigMap", config["name"])]
        if secret := volume.get("secret"):
            yield from [] if secret.get("optional") else [("Secret", secret["secretName"])]
    for container in spec["containers"]:
        for variable in container.get("env", []):
            ref = variable.get("valueFrom", {}).get("secretKeyRef")
            if ref and not ref.get("optional"):
                yield "Secret", ref["name"]


def test_a_hook_before_the_rest_needs_nothing_of_the_rest(first: dict[tuple[str, str, str], Object]) -> None:
    """Argo CD runs hooks of installations and of upgrades before the first sync, when nothing else is there."""
    early = [(obj, weight) for obj, kinds, weight in hooks(first) if "PreSync" in {PHASES.get(kind) for kind in kinds}]
    there = {(obj["kind"], obj["metadata"]["name"]): weight for obj, weight in early}
    jobs = [(obj, weight) for obj, weight in early if obj["kind"] == "Job"]
    assert jobs
    for job, weight in jobs:
        for need in needs(job):
            assert there.get(need, weight) < weight, (
                f"{job['metadata']['name']} starts before {' '.join(need)} is there"
            )


def test_what_helm_never_removes_argo_cd_leaves_too(first: dict[tuple[str, str, str], Object]) -> None:
    for (kind, namespace, name), obj in first.items():
        marks = obj["metadata"].get("annotations") or {}
        kept = marks.get("helm.sh/resource-policy") == "keep" and namespace == helm.NAMESPACE
        if kind == "CustomResourceDefinition" or (kept and kind in ("Secret", "PersistentVolumeClaim")):
            assert marks.get("argocd.argoproj.io/sync-options") == "Prune=false,Delete=false", f"{kind} {name}"


def test_argo_cd_does_not_wait_for_a_cron_job_that_runs_when_asked(first: dict[tuple[str, str, str], Object]) -> None:
    asked = [name for (kind, _, name), obj in first.items() if kind == "CronJob" and obj["spec"].get("suspend")]
    assert asked
    (patch,) = documents("argocd/health.yaml")
    assert 'hs.status = "Healthy"' in patch["data"]["resource.customizations.health.batch_CronJob"]
    unhooked = {name for kind, _, name in first if kind == "Job"} - {
        obj["metadata"]["name"] for obj, _, _ in hooks(first)
    }
    assert not unhooked, "an unfinished Job holds the sync up before the setup hook"
