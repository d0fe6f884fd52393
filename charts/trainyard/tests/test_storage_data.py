"""Backup, caches of data sets and the janitor: rendered objects, their rights, and refused values."""

from __future__ import annotations

from typing import Any

import pytest
from found import container, one
from stored import MNIST, TEAMS, contract

from rendering import Objects, Rendering


def test_backup_only_reads_and_only_restore_is_root_of_the_store(full: Objects) -> None:
    backup, restore = (container(full, "CronJob", f"trainyard-{name}") for name in ("backup", "restore"))
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
    """`helm --wait` would wait forever for a claim that no pod uses yet."""
    claims = {obj["metadata"]["name"] for obj in full if obj["kind"] == "PersistentVolumeClaim"}
    assert "trainyard-backup" not in claims
    job = one(full, "Job", "trainyard-backup-claim")
    assert "post-install" in job["metadata"]["annotations"]["helm.sh/hook"]
    assert "trainyard-backup" in container(full, "Job", "trainyard-backup-claim")["args"]


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


def test_backup_into_another_store(render: Rendering) -> None:
    target = {"kind": "s3", "s3": {"bucket": "site-backups", "prefix": "trainyard", "secret": "other-store"}}
    objects = render(contract(backup={"enabled": True, "target": target}))
    backup = container(objects, "CronJob", "trainyard-backup")
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


def test_change_of_a_data_set_is_a_new_job(render: Rendering) -> None:
    values = contract({"caches": [MNIST]})
    first, again = (cache_jobs(render(values, again=again)) for again in (False, True))
    other = cache_jobs(render(contract({"caches": [MNIST | {"prefix": "shared/other"}]})))
    assert len(first) == 1 and first == again and not first & other


def test_cache_is_refreshed_only_when_told(full: Objects, render: Rendering) -> None:
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
            'global.contract.teams: no team can be named "shared", because shared/ is the common prefix in buckets '
            "with a prefix per team; choose another name.",
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
            'backup.target.s3.secret is "trainyard-s3", the store that is backed up: name a Secret of another store.',
        ),
        (
            {"backup": {"enabled": True, "buckets": [], "workspaces": False}},
            "backup.enabled is true, but there is nothing to back up: list backup.buckets, or set backup.workspaces "
            "with nfs.enabled.",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_violation_is_reported_in_one_sentence(values: dict[str, Any], said: str, render: Rendering) -> None:
    assert said in render.errors(values)
