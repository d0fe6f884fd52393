"""Buckets of the contract with their versioning and lifecycle, and the platform's user in the cluster's store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainyard_agent.clock import Clock
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import accounts, connect, logs, s3_users

if TYPE_CHECKING:
    from minio import Minio
    from minio.lifecycleconfig import LifecycleConfig, Rule


# Rules with this prefix are ours; others in the same bucket are left alone.
OURS = "trainyard-"


def _reason(client: Minio, bucket: str) -> str:
    """The reason why the store can't answer a question about a bucket; "" if it can."""
    from minio.error import S3Error

    try:
        client.bucket_exists(bucket)
    except S3Error as error:
        return f"{error.code}: {error.message}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:160]}"
    return ""


def rules(bucket: dict[str, Any], abort_days: int) -> list[Rule]:
    """The lifecycle rules that a bucket needs by the contract. `abort_days` 0: the store itself removes old uploads."""
    from minio import lifecycleconfig as lifecycle
    from minio.commonconfig import ENABLED, Filter

    wanted = []
    everything = Filter(prefix="")
    expire, noncurrent = bucket.get("expireDays") or 0, bucket.get("noncurrentDays") or 0
    if expire:
        ends = lifecycle.Expiration(days=expire)
        wanted.append(lifecycle.Rule(ENABLED, everything, rule_id=f"{OURS}expire", expiration=ends))
    if noncurrent:
        # A delete marker with no versions left goes, too, unless a rule of its own removes it.
        marker = None if expire else lifecycle.Expiration(expired_object_delete_marker=True)
        older = lifecycle.NoncurrentVersionExpiration(noncurrent_days=noncurrent)
        wanted.append(
            lifecycle.Rule(
                ENABLED, everything, rule_id=f"{OURS}noncurrent", expiration=marker, noncurrent_version_expiration=older
            )
        )
    if abort_days:
        abort = lifecycle.AbortIncompleteMultipartUpload(days_after_initiation=abort_days)
        wanted.append(
            lifecycle.Rule(ENABLED, everything, rule_id=f"{OURS}uploads", abort_incomplete_multipart_upload=abort)
        )
    return wanted


def _meaning(rule: Rule) -> tuple[Any, ...]:
    """The effect of a rule, comparable however the store represents it."""
    ends, older, abort = (rule.expiration, rule.noncurrent_version_expiration, rule.abort_incomplete_multipart_upload)
    return (
        rule.rule_id,
        rule.status,
        (rule.rule_filter.prefix or "") if rule.rule_filter else "",
        (ends.days, bool(ends.expired_object_delete_marker)) if ends else None,
        older.noncurrent_days if older else None,
        abort.days_after_initiation if abort else None,
    )


def set_lifecycle(client: Minio, bucket: dict[str, Any], abort_days: int, *, only_say: bool = False) -> str:
    """Correct our rules of a bucket; returns what differed, "" if nothing did. Other rules stay."""
    from minio.lifecycleconfig import LifecycleConfig

    held: LifecycleConfig | None = client.get_bucket_lifecycle(bucket["name"])
    present = held.rules if held else []
    others = [rule for rule in present if not str(rule.rule_id or "").startswith(OURS)]
    wanted = rules(bucket, abort_days)
    same = {_meaning(rule) for rule in present if rule not in others} == {_meaning(rule) for rule in wanted}
    if same:
        return ""
    if not only_say:
        if wanted or others:
            client.set_bucket_lifecycle(bucket["name"], LifecycleConfig([*others, *wanted]))
        else:
            client.delete_bucket_lifecycle(bucket["name"])
    return "lifecycle: " + (", ".join(str(rule.rule_id).removeprefix(OURS) for rule in wanted) or "none")


def set_versioning(client: Minio, bucket: dict[str, Any], *, only_say: bool = False) -> str:
    """Correct a bucket's versioning; returns what differed, "" if nothing did."""
    from minio.commonconfig import ENABLED
    from minio.versioningconfig import SUSPENDED, VersioningConfig

    wanted = bool(bucket.get("versioning"))
    if (client.get_bucket_versioning(bucket["name"]).status == ENABLED) == wanted:
        return ""
    if not only_say:
        client.set_bucket_versioning(bucket["name"], VersioningConfig(ENABLED if wanted else SUSPENDED))
    return f"versioning {'on' if wanted else 'off'}"


def _ensure(client: Minio, bucket: dict[str, Any], abort_days: int, *, may_change: bool) -> None:
    name = bucket["name"]
    if not client.bucket_exists(name):
        if not may_change:
            raise PlatformError(f"bucket {name} does not exist, and storage.s3.createBuckets is false")
        client.make_bucket(name)
        say(f"bucket {name} made")
    try:
        differs = [
            said
            for said in (
                set_versioning(client, bucket, only_say=not may_change),
                set_lifecycle(client, bucket, abort_days, only_say=not may_change),
            )
            if said
        ]
    except Exception as error:
        if may_change:
            raise
        say(f"bucket {name}: its versioning and lifecycle can't be checked against the contract: {error}")
        return
    if differs:
        said = "; ".join(differs)
        say(
            f"bucket {name}: {said}"
            if may_change
            else f"bucket {name} differs, the contract wants {said}: set it yourself"
        )


def ensure(contract: dict[str, Any], clock: Clock) -> None:
    """Wait for the store, create and configure the buckets, and the platform's user if we administer the store.

    Raises PlatformError.
    """
    wanted = logs.all_buckets(contract)
    s3 = contract["storage"]["s3"]
    if not wanted:
        return
    in_cluster, ours = s3["mode"] == "inCluster", accounts.administered(contract)
    to = accounts.administrator(contract)
    quick = connect.client(to, patient=False)
    clock.wait(f"the object store at {to.endpoint}", lambda: _reason(quick, wanted[0]["name"]))
    client = connect.client(to)
    # MinIO has no such rule: its server removes old uploads by its own setting.
    abort_days = 0 if in_cluster else int(s3.get("abortUploadDays") or 0)
    try:
        for bucket in wanted:
            _ensure(client, bucket, abort_days, may_change=in_cluster or bool(s3.get("createBuckets")))
        if ours:
            s3_users.ensure_platform(contract)
    except PlatformError:
        raise
    except Exception as error:
        raise PlatformError(f"the object store refused: {type(error).__name__}: {error}") from error
