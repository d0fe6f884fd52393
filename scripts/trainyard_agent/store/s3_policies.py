"""Permissions of each user of the object store, as S3 policies, which other stores accept, too."""

from __future__ import annotations

from typing import Any

PLATFORM = "trainyard"
TEAM = "trainyard-team-"
LOGS = "trainyard-logs"  # the writer of the pods' logs
KFP = "trainyard-kfp"  # the service behind kfp.Client
SHARED = "shared"

READ = ["s3:GetObject", "s3:GetObjectVersion"]
WRITE = [*READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
LIST = ["s3:ListBucket", "s3:ListBucketVersions"]


def _allow(actions: list[str], resource: str, *, prefixes: list[str] | None = None) -> dict[str, Any]:
    """A statement on a bucket or on objects, named as `bucket` or `bucket/keys`."""
    statement: dict[str, Any] = {"Effect": "Allow", "Action": actions, "Resource": [f"arn:aws:s3:::{resource}"]}
    if prefixes:
        statement["Condition"] = {"StringLike": {"s3:prefix": prefixes}}
    return statement


def platform_policy(buckets: list[dict[str, Any]]) -> dict[str, Any]:
    """The platform's own permissions: for each bucket those of its access, nothing else."""
    statements = []
    for bucket in buckets:
        name, actions = bucket["name"], WRITE if bucket["access"] == "write" else READ
        statements.append(_allow([*LIST, "s3:GetBucketLocation"], name))
        statements.append(_allow(actions, f"{name}/*"))
    return {"Version": "2012-10-17", "Statement": statements}


def team_policy(buckets: list[dict[str, Any]], team: str) -> dict[str, Any]:
    """A team's permissions. All else is denied: other teams' prefixes, even their names."""
    statements = []
    for bucket in buckets:
        name, right = bucket["name"], bucket.get("teams", "none")
        if right == "none":
            continue
        statements.append(_allow(["s3:GetBucketLocation"], name))
        if right == "read":
            statements += [_allow(LIST, name), _allow(READ, f"{name}/*")]
            continue
        if right == "logs":  # a team reads its own logs, and nobody changes them
            statements += [_allow(LIST, name, prefixes=[f"{team}/*"]), _allow(READ, f"{name}/{team}/*")]
            continue
        statements.append(_allow(LIST, name, prefixes=[f"{team}/*", f"{SHARED}/*"]))
        statements.append(_allow(WRITE, f"{name}/{team}/*"))
        statements.append(_allow(READ, f"{name}/{SHARED}/*"))
        # MinIO treats permission to delete an object as permission to delete its versions, unless that is denied.
        statements.append(_allow(["s3:DeleteObjectVersion"], f"{name}/*") | {"Effect": "Deny"})
    return {"Version": "2012-10-17", "Statement": statements}


def logs_policy(bucket: str) -> dict[str, Any]:
    """Permissions of the log writer: it adds objects to one bucket, but lists, reads and removes none, even its own."""
    return {"Version": "2012-10-17", "Statement": [_allow(["s3:PutObject"], f"{bucket}/*")]}


def kfp_policy(bucket: str) -> dict[str, Any]:
    """Permissions of the service behind kfp.Client: it lists and reads what runs of all teams stored."""
    within = "*/pipelines/*"
    statements = [_allow(["s3:ListBucket"], bucket, prefixes=[within]), _allow(["s3:GetObject"], f"{bucket}/{within}")]
    return {"Version": "2012-10-17", "Statement": [_allow(["s3:GetBucketLocation"], bucket), *statements]}


def single(contract: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Policies of the users that have one purpose, by owner, as far as the contract has that purpose."""
    found = {}
    if logs := contract.get("logs"):
        found[LOGS] = logs_policy(logs["bucket"])
    if contract.get("kfpApi"):
        found[KFP] = kfp_policy(contract["pipelines"]["bucket"])
    return found
