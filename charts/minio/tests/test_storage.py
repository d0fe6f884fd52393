"""The object store: TLS, keys, stores outside the cluster; rendered objects, their rights, and refused values."""

from __future__ import annotations

import re
import ssl
from typing import Any

import pytest
from found import container, contract_of, one, pod_of
from stored import TEAMS, contract, text

from rendering import Objects, Rendering
from trainyard.chart import helm


def test_everyone_gets_the_one_authority_and_https(full: Objects) -> None:
    pair = one(full, "Secret", "trainyard-minio-tls")
    ca = text(pair, "ca.crt")
    ssl.create_default_context(cadata=ca)
    assert "PRIVATE KEY" in text(pair, "tls.key")
    for namespace in ("trainyard-system", "vision", "speech"):
        secret = one(full, "Secret", "trainyard-s3", namespace)
        assert text(secret, "ca.crt") == ca, namespace
        assert text(secret, "endpoint") == "https://trainyard-minio.trainyard-system.svc:9000"
    assert contract_of(full)["s3"]["endpoint"].startswith("https://")


def test_probes_speak_https_with_the_server(full: Objects) -> None:
    server = container(full, "StatefulSet", "trainyard-minio")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"]["scheme"] == "HTTPS"


def test_without_tls_no_certificate_is_made(render: Rendering) -> None:
    objects = render(contract(minio={"tls": {"enabled": False}}))
    secrets = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "Secret"}
    assert "trainyard-minio-tls" not in secrets
    assert "ca.crt" not in secrets["trainyard-s3"]["stringData"]
    assert text(secrets["trainyard-s3"], "endpoint").startswith("http://")
    assert not [obj for obj in objects if obj["metadata"]["name"] == "trainyard-minio-transition"]


def test_keys_are_random_and_say_nothing(full: Objects) -> None:
    root = one(full, "Secret", "trainyard-minio-root")
    platform = one(full, "Secret", "trainyard-s3")
    for secret, key in ((root, "root-user"), (platform, "access-key")):
        assert re.fullmatch("[A-Z0-9]{20}", text(secret, key))
    assert len(text(root, "root-password")) == len(text(platform, "secret-key")) == 40


def test_no_key_of_a_team_lies_among_helms_releases(full: Objects) -> None:
    for team in ("vision", "speech"):
        held = one(full, "Secret", "trainyard-s3", team)["stringData"]
        assert set(held) == {"endpoint", "region", "ca.crt"}
        [own] = [
            rule for rule in one(full, "Role", "trainyard-setup", team)["rules"] if rule["resources"] == ["secrets"]
        ]
        assert (own["resourceNames"], own["verbs"]) == (["trainyard-s3"], ["get", "patch"])


def test_job_of_keys_may_end_keys_and_the_transition_only(full: Objects) -> None:
    job = container(full, "CronJob", "trainyard-s3-keys")
    assert job["args"] == ["s3-keys", "--transition", "trainyard-minio-transition"]
    assert {"MINIO_ROOT_USER", "S3_ENDPOINT", "S3_CA"} <= {entry["name"] for entry in job["env"]}
    own = one(full, "Role", "trainyard-s3-keys")["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in own] == [
        (["pods"], None, ["list"]),
        (["configmaps"], ["trainyard-keys", "trainyard-minio-transition"], ["get", "patch"]),
    ]
    bound = [obj["metadata"]["namespace"] for obj in full
             if obj["kind"] == "RoleBinding" and obj["metadata"]["name"] == "trainyard-s3-keys"]  # fmt: skip
    assert sorted(bound) == ["speech", "trainyard-system", "vision"]
    assert not [obj for obj in full if obj["kind"] == "ClusterRole" and "s3-keys" in obj["metadata"]["name"]]


def test_connections_without_tls_are_closed_where_nothing_was_before(full: Objects) -> None:
    assert one(full, "ConfigMap", "trainyard-minio-transition")["data"] == {"since": "0", "until": "0"}
    spec = pod_of(full, "StatefulSet", "trainyard-minio")
    assert {"name": "TRAINYARD_PLAIN_UNTIL_FILE", "value": "/transition/until"} in spec["containers"][0]["env"]
    [volume] = [volume for volume in spec["volumes"] if volume["name"] == "transition"]
    assert volume["configMap"] == {"name": "trainyard-minio-transition", "optional": True}


def test_platform_trusts_the_certificate_that_is_served(full: Objects) -> None:
    for kind, name in (("Job", "trainyard-setup"), ("CronJob", "trainyard-s3-keys"), ("CronJob", "trainyard-backup")):
        [ca] = [entry for entry in container(full, kind, name)["env"] if entry["name"] == "S3_CA"]
        assert ca["valueFrom"]["secretKeyRef"] == {"name": "trainyard-minio-tls", "key": "ca.crt", "optional": True}


RGW = {"s3": {"mode": "external", "endpoint": "https://rgw.site", "users": "rgw"}}
SITE = [{"cidr": "192.0.2.0/24", "port": 443}]


def external(storage: dict[str, Any]) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, "storage": storage, "network": {"s3": SITE}}}}


def test_ceph_gets_its_users_from_the_setup_job(render: Rendering) -> None:
    objects = render(external(RGW))
    assert set(one(objects, "Secret", "trainyard-s3", "vision")["stringData"]) == {"endpoint", "region"}
    for kind, name in (("Job", "trainyard-setup"), ("CronJob", "trainyard-s3-keys")):
        env = {entry["name"]: entry["valueFrom"]["secretKeyRef"] for entry in container(objects, kind, name)["env"]}
        assert env["ADMIN_ACCESS_KEY"] == {"name": "trainyard-s3-root", "key": "access-key"}
        assert env["S3_CA"]["name"] == "trainyard-s3" and "MINIO_ROOT_USER" not in env
    assert not [obj for obj in objects if obj["metadata"]["name"].startswith("trainyard-minio")]


def test_external_store_without_its_users_gets_no_job_of_keys(render: Rendering) -> None:
    objects = render(external({"s3": {"mode": "external", "endpoint": "https://s3.site"}}))
    assert not [obj for obj in objects if "s3-keys" in obj["metadata"]["name"]]


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ({"s3": {"users": "rgw"}}, "global.contract.storage.s3.users is rgw, which is for an external store"),
        (
            {"s3": {**RGW["s3"], "adminSecret": "trainyard-s3"}},
            'adminSecret is "trainyard-s3", the platform\'s own user',
        ),
        ({"s3": {"mode": "external"}}, "or, for a trial, the mode to inCluster for MinIO in the cluster"),
    ],
)
def test_store_that_does_not_fit_is_refused(render: Rendering, storage: dict[str, Any], message: str) -> None:
    assert [message in line for line in render.errors(external(storage))] == [True]


def test_machines_of_ones_own_are_asked_for_a_store(render: Rendering) -> None:
    [line] = render.errors(contract({"s3": {"endpoint": ""}}), profile="on-prem")
    assert line.startswith("global.contract.storage.s3.mode is external: set global.contract.storage.s3.endpoint")
    objects = render(contract({"s3": {"mode": "inCluster"}}), profile="on-prem")
    assert one(objects, "StatefulSet", "trainyard-minio")


def test_certificate_of_the_sites_own_is_mounted_and_none_is_made(render: Rendering) -> None:
    objects = render(contract(minio={"tls": {"enabled": True, "secret": "site-tls"}}))
    volumes = pod_of(objects, "StatefulSet", "trainyard-minio")["volumes"]
    assert [v["secret"]["secretName"] for v in volumes if "secret" in v] == ["site-tls"]
    assert not [obj for obj in objects if obj["metadata"]["name"] == "trainyard-minio-tls"]


def test_whoever_uses_the_store_knows_its_authority(full: Objects) -> None:
    users = 0
    for obj in full:
        for spec in helm.pod_specs(obj):
            for each in helm.containers(spec):
                env = {entry["name"]: entry for entry in each.get("env") or []}
                for name in env:
                    if name.endswith("S3_ENDPOINT"):
                        users += 1
                        assert env["S3_CA"]["valueFrom"]["secretKeyRef"]["optional"], obj["metadata"]["name"]
    assert users >= 5


def test_no_pod_of_storage_has_rights_on_its_node(full: Objects) -> None:
    for name in ("backup", "restore", "cache", "janitor", "s3-keys"):
        spec = pod_of(full, "CronJob", f"trainyard-{name}")
        closed = spec["containers"][0]["securityContext"]
        assert closed["capabilities"] == {"drop": ["ALL"]}
        assert closed["readOnlyRootFilesystem"] and not closed["allowPrivilegeEscalation"]
        # uid 0 is for the file server, which knows no capabilities; nothing else may have it.
        assert (spec["securityContext"].get("runAsUser") == 0) == (name in ("backup", "restore"))
        assert spec["automountServiceAccountToken"] is (name in ("janitor", "s3-keys"))


def test_external_store_publishes_policies_and_makes_no_user(rendered: dict[str, Objects]) -> None:
    objects = rendered["cloud"]
    assert one(objects, "ConfigMap", "trainyard-s3-policies").get("data") is None
    assert one(objects, "Role", "trainyard-s3-policies")["rules"][0]["resourceNames"] == ["trainyard-s3-policies"]
    restore = container(objects, "CronJob", "trainyard-restore")
    assert not [entry for entry in restore["env"] if entry["name"].startswith("MINIO")]
