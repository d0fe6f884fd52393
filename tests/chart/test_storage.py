"""The object store with TLS, caches, janitor, backup: what is rendered, its rights, and what values are refused."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.chart import helm
from trainyard_dev.chart import package

TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
MNIST = {"name": "mnist", "bucket": "datasets", "prefix": "shared/mnist"}
Objects = list[dict[str, Any]]


def contract(storage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, "storage": storage or {}}}} | more


@pytest.fixture(scope="session")
def render(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Objects]:
    """What the chart makes of values beside the profile kind."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"

    def go(values: dict[str, Any], profile: str = "kind") -> Objects:
        file.write_text(yaml.safe_dump(values))
        return package.render(profile, chart, values=[file])

    return go


@pytest.fixture(scope="session")
def full(render: Callable[..., Objects]) -> Objects:
    """Everything switched on."""
    return render(contract({"caches": [MNIST]}, backup={"enabled": True}))


def one(objects: Objects, kind: str, name: str, namespace: str = "trainyard-system") -> dict[str, Any]:
    found = [
        obj
        for obj in objects
        if (obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", namespace))
        == (kind, name, namespace)
    ]
    assert len(found) == 1, (kind, name, namespace, len(found))
    return found[0]


def text(secret: dict[str, Any], key: str) -> str:
    held = secret.get("stringData", {}).get(key)
    return str(held) if held is not None else base64.b64decode(secret["data"][key]).decode()


def container(obj: dict[str, Any]) -> dict[str, Any]:
    return helm.pod_specs(obj)[0]["containers"][0]


def test_everyone_gets_the_one_authority_and_https(full: Objects) -> None:
    pair = one(full, "Secret", "trainyard-minio-tls")
    ca = text(pair, "ca.crt")
    ssl.create_default_context(cadata=ca)
    assert "PRIVATE KEY" in text(pair, "tls.key")
    for namespace in ("trainyard-system", "vision", "speech"):
        secret = one(full, "Secret", "trainyard-s3", namespace)
        assert text(secret, "ca.crt") == ca, namespace
        assert text(secret, "endpoint") == "https://trainyard-minio.trainyard-system.svc:9000"
    published = yaml.safe_load(one(full, "ConfigMap", "trainyard-contract")["data"]["contract.yaml"])
    assert published["s3"]["endpoint"].startswith("https://")


def test_probes_speak_https_with_the_server(full: Objects) -> None:
    server = container(one(full, "StatefulSet", "trainyard-minio"))
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"]["scheme"] == "HTTPS"


def test_without_tls_no_certificate_is_made(render: Callable[..., Objects]) -> None:
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
    job = container(one(full, "CronJob", "trainyard-s3-keys"))
    assert job["args"] == ["s3-keys", "--transition", "trainyard-minio-transition"]
    assert {"MINIO_ROOT_USER", "S3_ENDPOINT", "S3_CA"} <= {entry["name"] for entry in job["env"]}
    own = one(full, "Role", "trainyard-s3-keys")["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in own] == [
        (["pods"], None, ["list"]),
        (["configmaps"], ["trainyard-minio-transition"], ["get", "patch"]),
    ]
    bound = [obj["metadata"]["namespace"] for obj in full
             if obj["kind"] == "RoleBinding" and obj["metadata"]["name"] == "trainyard-s3-keys"]  # fmt: skip
    assert sorted(bound) == ["speech", "trainyard-system", "vision"]
    assert not [obj for obj in full if obj["kind"] == "ClusterRole" and "s3-keys" in obj["metadata"]["name"]]


def test_connections_without_tls_are_closed_where_nothing_was_before(full: Objects) -> None:
    assert one(full, "ConfigMap", "trainyard-minio-transition")["data"] == {"since": "0", "until": "0"}
    [spec] = helm.pod_specs(one(full, "StatefulSet", "trainyard-minio"))
    assert {"name": "TRAINYARD_PLAIN_UNTIL_FILE", "value": "/transition/until"} in spec["containers"][0]["env"]
    [volume] = [volume for volume in spec["volumes"] if volume["name"] == "transition"]
    assert volume["configMap"] == {"name": "trainyard-minio-transition", "optional": True}


def test_platform_trusts_the_certificate_that_is_served(full: Objects) -> None:
    for kind, name in (("Job", "trainyard-setup"), ("CronJob", "trainyard-s3-keys"), ("CronJob", "trainyard-backup")):
        [ca] = [entry for entry in container(one(full, kind, name))["env"] if entry["name"] == "S3_CA"]
        assert ca["valueFrom"]["secretKeyRef"] == {"name": "trainyard-minio-tls", "key": "ca.crt", "optional": True}


RGW = {"s3": {"mode": "external", "endpoint": "https://rgw.site", "users": "rgw"}}
SITE = [{"cidr": "192.0.2.0/24", "port": 443}]


def external(storage: dict[str, Any]) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, "storage": storage, "network": {"s3": SITE}}}}


def test_ceph_gets_its_users_from_the_setup_job(render: Callable[..., Objects]) -> None:
    objects = render(external(RGW))
    assert set(one(objects, "Secret", "trainyard-s3", "vision")["stringData"]) == {"endpoint", "region"}
    for kind, name in (("Job", "trainyard-setup"), ("CronJob", "trainyard-s3-keys")):
        env = {
            entry["name"]: entry["valueFrom"]["secretKeyRef"] for entry in container(one(objects, kind, name))["env"]
        }
        assert env["ADMIN_ACCESS_KEY"] == {"name": "trainyard-s3-root", "key": "access-key"}
        assert env["S3_CA"]["name"] == "trainyard-s3" and "MINIO_ROOT_USER" not in env
    assert not [obj for obj in objects if obj["metadata"]["name"].startswith("trainyard-minio")]


def test_external_store_without_its_users_gets_no_job_of_keys(render: Callable[..., Objects]) -> None:
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
        ({"s3": {"mode": "external"}}, "or, for a trial, the mode to inCluster, which is MinIO in the cluster"),
    ],
)
def test_store_that_does_not_fit_is_refused(
    validation_errors: Callable[..., list[str]], storage: dict[str, Any], message: str
) -> None:
    assert [message in line for line in validation_errors(external(storage))] == [True]


def test_machines_of_ones_own_are_asked_for_a_store(
    validation_errors: Callable[..., list[str]], render: Callable[..., Objects]
) -> None:
    [line] = validation_errors(contract({"s3": {"endpoint": ""}}), profile="on-prem")
    assert line.startswith("global.contract.storage.s3.mode is external: set global.contract.storage.s3.endpoint")
    objects = render(contract({"s3": {"mode": "inCluster"}}), profile="on-prem")
    assert one(objects, "StatefulSet", "trainyard-minio")


def test_certificate_of_the_sites_own_is_mounted_and_none_is_made(render: Callable[..., Objects]) -> None:
    objects = render(contract(minio={"tls": {"enabled": True, "secret": "site-tls"}}))
    volumes = helm.pod_specs(one(objects, "StatefulSet", "trainyard-minio"))[0]["volumes"]
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
        spec = helm.pod_specs(one(full, "CronJob", f"trainyard-{name}"))[0]
        closed = spec["containers"][0]["securityContext"]
        assert closed["capabilities"] == {"drop": ["ALL"]}
        assert closed["readOnlyRootFilesystem"] and not closed["allowPrivilegeEscalation"]
        # uid 0 is for the file server, which knows no capabilities; nothing else may have it.
        assert (spec["securityContext"].get("runAsUser") == 0) == (name in ("backup", "restore"))
        assert spec["automountServiceAccountToken"] is (name in ("janitor", "s3-keys"))


def test_backup_only_reads_and_only_restore_is_root_of_the_store(full: Objects) -> None:
    backup, restore = (container(one(full, "CronJob", f"trainyard-{name}")) for name in ("backup", "restore"))
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in backup["volumeMounts"]}
    assert mounts["export"] and not mounts["backup"]
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in restore["volumeMounts"]}
    assert mounts["backup"] and not mounts["export"]
    assert "MINIO_ROOT_PASSWORD" not in {entry["name"] for entry in backup["env"]}
    assert "MINIO_ROOT_PASSWORD" in {entry["name"] for entry in restore["env"]}


def test_nothing_is_backed_up_or_restored_unless_told(rendered: dict[str, Objects], full: Objects) -> None:
    for name, switched_on in (("backup", True), ("restore", False)):
        assert one(rendered["kind"], "CronJob", f"trainyard-{name}")["spec"]["suspend"] is True
        assert one(full, "CronJob", f"trainyard-{name}")["spec"]["suspend"] is not switched_on


def test_backup_claim_is_no_part_of_the_release(full: Objects) -> None:
    """`helm --wait` would wait for ever for a claim that no pod uses yet."""
    claims = {obj["metadata"]["name"] for obj in full if obj["kind"] == "PersistentVolumeClaim"}
    assert "trainyard-backup" not in claims
    job = one(full, "Job", "trainyard-backup-claim")
    assert "post-install" in job["metadata"]["annotations"]["helm.sh/hook"]
    assert "trainyard-backup" in container(job)["args"]


def test_whole_export_is_for_one_claim_only(full: Objects) -> None:
    volume = next(
        obj
        for obj in full
        if obj["kind"] == "PersistentVolume" and obj["metadata"]["name"].startswith("trainyard-export-")
    )
    name = volume["metadata"]["name"]
    assert volume["spec"]["claimRef"] | {"apiVersion": ""} == {
        "apiVersion": "", "kind": "PersistentVolumeClaim", "namespace": "trainyard-system", "name": name,
    }  # fmt: skip
    assert one(full, "PersistentVolumeClaim", name)["spec"]["volumeName"] == name


def test_backup_into_another_store(render: Callable[..., Objects]) -> None:
    target = {"kind": "s3", "s3": {"bucket": "site-backups", "prefix": "trainyard", "secret": "other-store"}}
    objects = render(contract(backup={"enabled": True, "target": target}))
    backup = container(one(objects, "CronJob", "trainyard-backup"))
    assert {"--to-bucket=site-backups", "--to-prefix=trainyard"} <= set(backup["args"])
    env = {entry["name"]: entry["valueFrom"]["secretKeyRef"]["name"] for entry in backup["env"]}
    assert env["TARGET_SECRET_KEY"] == "other-store"
    assert env["S3_SECRET_KEY"] == "trainyard-s3"
    assert not [obj for obj in objects if obj["metadata"]["name"] == "trainyard-backup-claim"]


def cache_jobs(objects: Objects) -> set[str]:
    return {
        obj["metadata"]["name"]
        for obj in objects
        if obj["kind"] == "Job" and obj["metadata"]["name"].startswith("trainyard-cache-")
    }


def test_change_of_a_data_set_is_a_new_job(render: Callable[..., Objects]) -> None:
    first, again = (cache_jobs(render(contract({"caches": [MNIST]}))) for _ in range(2))
    other = cache_jobs(render(contract({"caches": [MNIST | {"prefix": "shared/other"}]})))
    assert len(first) == 1 and first == again and not first & other


def test_cache_is_refreshed_only_when_told(full: Objects, render: Callable[..., Objects]) -> None:
    assert one(full, "CronJob", "trainyard-cache")["spec"]["suspend"] is True
    hourly = render(contract({"caches": [MNIST]}, datasetCache={"schedule": "@hourly"}))
    spec = one(hourly, "CronJob", "trainyard-cache")["spec"]
    assert (spec["suspend"], spec["schedule"]) == (False, "@hourly")


def test_janitor_has_rights_on_claims_of_teams_and_on_caches(full: Objects) -> None:
    bound = [
        (obj["kind"], obj["metadata"].get("namespace"), obj["roleRef"]["kind"])
        for obj in full
        for subject in obj.get("subjects") or []
        if subject.get("name") == "trainyard-janitor"
    ]
    spaces = ["trainyard-system", *(team["name"] for team in TEAMS)]
    assert sorted(bound) == sorted(("RoleBinding", space, "Role") for space in spaces)
    (own,) = one(full, "Role", "trainyard-janitor", "trainyard-system")["rules"]
    assert (own["resources"], own["verbs"]) == (["configmaps"], ["list", "update", "delete"])
    rules = one(full, "Role", "trainyard-janitor", "vision")["rules"]
    verbs = {resource: rule["verbs"] for rule in rules for resource in rule["resources"]}
    assert verbs["persistentvolumeclaims"] == ["list", "patch", "delete"]
    assert {verb for name, held in verbs.items() if name != "persistentvolumeclaims" for verb in held} == {
        "list",
        "get",
    }


def test_external_store_publishes_policies_and_makes_no_user(rendered: dict[str, Objects]) -> None:
    objects = rendered["cloud"]
    assert one(objects, "ConfigMap", "trainyard-s3-policies").get("data") is None
    assert one(objects, "Role", "trainyard-s3-policies")["rules"][0]["resourceNames"] == ["trainyard-s3-policies"]
    restore = container(one(objects, "CronJob", "trainyard-restore"))
    assert not [entry for entry in restore["env"] if entry["name"].startswith("MINIO")]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            contract({"caches": [MNIST | {"bucket": "gone"}]}),
            'global.contract.storage.caches: "mnist" is copied from "gone", which is not among '
            "global.contract.storage.buckets (raw-data, datasets, runs).",
        ),
        (
            contract({"caches": [MNIST, MNIST]}),
            'global.contract.storage.caches names "mnist" twice; give each data set a name of its own.',
        ),
        (
            contract({"buckets": [{"name": "x-y", "access": "read", "teams": "none", "noncurrentDays": 3}]}),
            'global.contract.storage.buckets: "x-y" has noncurrentDays but no versions; set versioning to true, or '
            "noncurrentDays to 0.",
        ),
        (
            {"global": {"contract": {"teams": [{"name": "shared", "gid": 20001}]}}},
            'global.contract.teams: no team can be named "shared", because all teams read below shared/ in buckets '
            "that have a prefix for each; choose another name.",
        ),
        (
            {"backup": {"buckets": ["gone"]}},
            'backup.buckets names "gone", which is not among global.contract.storage.buckets '
            "(raw-data, datasets, runs).",
        ),
        (
            {"backup": {"enabled": True, "target": {"kind": "s3"}}},
            "backup.target.kind is s3: set backup.target.s3.bucket to a bucket that exists.",
        ),
        (
            {"backup": {"enabled": True, "target": {"kind": "s3", "s3": {"bucket": "bbb", "secret": "trainyard-s3"}}}},
            'backup.target.s3.secret is "trainyard-s3", the store that is backed up: name a Secret for another store.',
        ),
        (
            {"backup": {"enabled": True, "buckets": [], "workspaces": False}},
            "backup.enabled is true, but there is nothing to back up: list backup.buckets, or set backup.workspaces "
            "with nfs.enabled.",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_violation_is_reported_in_one_sentence(
    values: dict[str, Any], said: str, validation_errors: Callable[..., list[str]]
) -> None:
    assert said in validation_errors(values)
