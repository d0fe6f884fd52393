"""One mirror and one list: every image of an installation follows global.imageRegistry and is in the list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from found import contract_of

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.errors import TrainyardError
from trainyard.paths import CHART
from trainyard_dev.chart import adapt_images, images, options, parts

MIRROR = "registry.example.org:5000/mirror"
TEAM = [
    f"global.contract.teams[0].{one}" for one in ("name=vision", "gid=20001", "members.groups[0]=vision-members")
] + [f"global.contract.network.s3[0].{one}" for one in ("cidr=203.0.113.0/24", "port=443")]
OPTIONS = options.switched()
WRITTEN = yaml.safe_load((CHART / "values.yaml").read_text())["policies"]["fill"]["images"]  # by members: not pulled
HOSTS = re.compile(r"\b(?:docker\.io|ghcr\.io|nvcr\.io|quay\.io|gcr\.io|registry\.k8s\.io)/[\w./-]+")


def _strings(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [text for value in node.values() for text in _strings(value)]
    if isinstance(node, list):
        return [text for value in node for text in _strings(value)]
    return [node] if isinstance(node, str) else []


@pytest.fixture(scope="module")
def mirrored(render: Rendering) -> dict[str, Objects]:
    sets = [*TEAM, *OPTIONS, f"global.imageRegistry={MIRROR}", "global.imagePullSecrets[0].name=pull"]
    return {name: render(profile=name, sets=sets) for name in parts.profiles()}


def test_the_mirror_holds_every_image_of_every_object(mirrored: dict[str, Objects]) -> None:
    for profile, objects in mirrored.items():
        found = images.references(objects)
        assert len(found) > 8, profile
        assert [ref for ref in found if not ref.startswith(f"{MIRROR}/")] == [], profile


def test_nothing_names_another_registry(mirrored: dict[str, Objects]) -> None:
    """In any place: arguments, variables, the contract, a policy's parameters, a template in a ConfigMap."""
    for objects in mirrored.values():
        plain = [obj for obj in objects if obj["kind"] != "CustomResourceDefinition"]
        left = [
            (obj["metadata"]["name"], name) for obj in plain for text in _strings(obj) for name in HOSTS.findall(text)
        ]
        assert [(where, name) for where, name in left if name not in WRITTEN] == []


def test_the_mirror_keeps_repository_and_tag(render: Rendering, mirrored: dict[str, Objects]) -> None:
    for profile in parts.profiles():
        sets = [*TEAM, *OPTIONS]
        listed = render.images(*sets, f"global.imageRegistry={MIRROR}", profile=profile)
        assert images.references(mirrored[profile]) <= {image.pulled for image in listed}
        assert {image.ref for image in listed} == {image.ref for image in render.images(*sets, profile=profile)}


def test_unset_every_image_comes_from_its_own_registry(render: Rendering) -> None:
    listed = render.images(profile="on-prem")
    hosts = {"docker.io", "ghcr.io", "nvcr.io", "quay.io", "site.invalid"}
    assert hosts == {image.ref.partition("/")[0] for image in listed}
    assert all(image.pulled == image.ref for image in listed if not image.own)


def test_the_list_names_what_starts_an_image(render: Rendering) -> None:
    uses = {image.ref.rpartition("/")[2].partition(":")[0]: image.uses for image in render.images()}
    assert "Job trainyard-setup" in uses["platform"]
    assert "Pod trainyard-test" in uses["platform"]
    assert "jobs of Deployment trainyard-training-operator" in uses["kubectl-delivery"]
    assert {"contract trainerTorch", "manifests/jobs/pytorchjob.yaml"} <= set(uses["trainer-torch"])
    assert "Job trainyard-admission-init" in uses["vc-webhook-manager"]


def test_every_pod_has_the_pull_secrets(mirrored: dict[str, Objects]) -> None:
    for objects in mirrored.values():
        for obj in objects:
            for spec in helm.pod_specs(obj):
                assert {"name": "pull"} in spec.get("imagePullSecrets", []), obj["metadata"]["name"]


def test_jobs_of_teams_have_the_pull_secrets(mirrored: dict[str, Objects]) -> None:
    for objects in mirrored.values():
        [account] = [o for o in objects if o["kind"] == "ServiceAccount" and o["metadata"]["name"] == "training"]
        assert account["imagePullSecrets"] == [{"name": "pull"}]


def test_a_charts_own_pull_secrets_stay(render: Rendering) -> None:
    own = ["volcano.basic.image_pull_secret=mine", "nvidia-device-plugin.imagePullSecrets[0].name=mine"]
    objects = render(sets=[*own, "global.imagePullSecrets[0].name=pull"])
    for name in ("trainyard-scheduler", "trainyard-admission-init", "trainyard-nvidia-device-plugin"):
        [spec] = [s for o in objects if o["metadata"]["name"] == name for s in helm.pod_specs(o)]
        assert spec["imagePullSecrets"] == [{"name": "mine"}, {"name": "pull"}], name


# our own images

OURS = "registry.example.org:5000/gpu"


def test_our_images_come_from_the_registry_of_one_value(render: Rendering) -> None:
    listed = render.images(*TEAM, *OPTIONS, f"global.ownImageRegistry={OURS}")
    assert all(image.pulled.startswith(f"{OURS}/trainyard/") is image.own for image in listed)
    assert sum(image.own for image in listed) > 10


def test_a_mirror_has_them_below_their_path(render: Rendering) -> None:
    sets = [f"global.ownImageRegistry={OURS}", f"global.imageRegistry={MIRROR}"]
    assert contract_of(render(sets=sets))["imageRegistry"] == f"{MIRROR}/gpu"


@pytest.mark.parametrize(("mirror", "due"), [("", "ghcr.io/acme/torch:1"), (MIRROR, f"{MIRROR}/acme/torch:1")])
def test_an_own_image_may_name_its_host(render: Rendering, mirror: str, due: str) -> None:
    sets = ["global.contract.images.trainerTorch=ghcr.io/acme/torch:1", f"global.imageRegistry={mirror}"]
    lists = contract_of(render(sets=[*sets, f"global.ownImageRegistry={OURS}"]))["policies"]["fill"]
    named = dict(zip(lists["imageNames"], lists["imageReferences"], strict=True))
    assert named["site.invalid/trainyard/trainer-torch"] == due


def test_what_manifests_name_is_replaced_by_what_is_installed(render: Rendering) -> None:
    lists = contract_of(render(sets=[f"global.ownImageRegistry={OURS}"]))["policies"]["fill"]
    named = dict(zip(lists["imageNames"], lists["imageReferences"], strict=True))
    ours = {name: reference for name, reference in named.items() if name.startswith("site.invalid/")}
    assert all(reference.startswith(f"{OURS}/{name.partition('/')[2]}:") for name, reference in ours.items())
    assert {name.rpartition("/")[2] for name in ours} >= {"trainer-torch", "trainer-horovod-tensorflow", "python-311"}


def test_without_a_registry_nothing_is_installed(render: Rendering) -> None:
    said = render.refusal(sets=["global.ownImageRegistry="])
    assert "global.ownImageRegistry is empty: name the registry" in said
    assert "to keep that, set global.ownImageRegistry=docker.io" in said


def test_a_parent_chart_has_values_of_its_own(render: Rendering) -> None:
    assert render(sets=["global.acme.region=eu"])


# how upstream's templates are changed

TEMPLATE = """\
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: a
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
"""


def adapted(tmp_path: Path, text: str) -> str:
    file = tmp_path / "templates" / "a.yaml"
    file.parent.mkdir()
    file.write_text(text)
    adapt_images.adapt_images("demo", tmp_path)
    return file.read_text()


def test_a_pod_without_pull_secrets_gets_them(tmp_path: Path) -> None:
    text = adapted(tmp_path, TEMPLATE)
    assert '(printf "%v:%v" (.Values.image.repository) (.Values.image.tag))' in text
    assert text.index("imagePullSecrets") < text.index("containers:")


def test_an_image_that_is_not_understood_stops_the_packaging(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="0 of 1 images were recognized"):
        adapted(tmp_path, TEMPLATE.replace('"{{ .Values.image.repository }}:{{ .Values.image.tag }}"', '"demo:1"'))


def test_examples_are_parsed_as_yaml(render: Rendering) -> None:
    """An example's image that versions.yaml doesn't pin would be missed by the list."""
    known = {image.ref for image in render.images()}
    for file in sorted((parts.UMBRELLA.parents[1] / "manifests" / "jobs").glob("*.yaml")):
        for job in yaml.safe_load_all(file.read_text()):
            assert set(re.findall(r"image': '([^']+)", str(job))) <= known, file.name
