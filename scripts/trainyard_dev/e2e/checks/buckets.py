"""Buckets as teams use them: their own prefix, older versions; and claims that are removed after their run."""

import base64
import io

from minio.error import S3Error

from trainyard_agent.runs.janitor import RUN, TTL
from trainyard_dev.e2e import cronjobs, store
from trainyard_dev.e2e.checks.storage import claim
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.entry import STORAGE_CODE, check
from trainyard_dev.e2e.recorder import CheckError, Figures, require

CRONJOB = "trainyard-janitor"


@check("storage.team-buckets", title="each team's S3 key reaches its own prefix", inputs=STORAGE_CODE)
def team_buckets(context: Context, figures: Figures) -> None:
    """Each team's key works below its own prefix, reads shared data, and sees nothing of the other team."""
    for team, other in ((NAMESPACE, OTHER), (OTHER, NAMESPACE)):
        with store.connect(context.kubectl, SYSTEM, of=team) as own:
            for bucket in ("datasets", "runs"):
                own.client.put_object(bucket, f"{team}/check", io.BytesIO(team.encode()), len(team))
                require(own.read(bucket, f"{team}/check") == team.encode(), f"{bucket}/{team}/check differs")
                own.client.remove_object(bucket, f"{team}/check")
            figures[f"{team} sees shared objects"] = len(own.names("datasets", "shared/"))
            own.names("raw-data", "")
            try:
                own.names("runs", f"{other}/")
            except S3Error as error:
                require(error.code == "AccessDenied", f"listing {other}/ failed for another reason: {error.code}")
            else:
                raise CheckError(f"the key of {team} lists runs/{other}/")


@check("storage.versioning", title="an overwritten or deleted object can be recovered", inputs=STORAGE_CODE)
def versioning(context: Context, figures: Figures) -> None:
    """A team overwrites and deletes an object and restores the first version by itself."""
    key = f"{NAMESPACE}/versioned"
    with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as own:
        for text in (b"first", b"second"):
            own.client.put_object("datasets", key, io.BytesIO(text), len(text))
        own.client.remove_object("datasets", key)
        held = [
            (entry.last_modified, entry.version_id)
            for entry in own.client.list_objects("datasets", key, include_version=True)
            if not entry.is_delete_marker
        ]
        require(len(held) >= 2, f"{len(held)} versions remain, 2 were written")
        texts = set()
        for _, version in held:
            answer = own.client.get_object("datasets", key, version_id=version)
            texts.add(answer.read())
            answer.close()
        require(texts >= {b"first", b"second"}, f"the versions hold {texts}")
        figures["versions"] = len(held)
    root = context.kubectl.get("secret", "trainyard-minio-root", "-n", SYSTEM)[0]["data"]
    keys = [base64.b64decode(root[name]).decode() for name in ("root-user", "root-password")]
    with store.connect(context.kubectl, SYSTEM, keys=(keys[0], keys[1])) as admin:
        rules = admin.client.get_bucket_lifecycle("datasets")
        days = [
            rule.noncurrent_version_expiration.noncurrent_days
            for rule in (rules.rules if rules else [])
            if rule.noncurrent_version_expiration
        ]
    wanted = next(b for b in context.contract["storage"]["buckets"] if b["name"] == "datasets")["noncurrentDays"]
    figures["older versions expire after days"] = days
    require(days == [wanted], f"older versions expire after {days} days, not {wanted} as in the contract")


@check("storage.ttl", title="claims of finished runs are deleted after their time", inputs=STORAGE_CODE)
def ttl(context: Context, figures: Figures) -> None:
    """The claim of a run that is gone is removed; one that a pod uses, and one without a time to live, stay."""
    claims = []
    for name, notes in (("ttl-gone", {TTL: "1"}), ("ttl-used", {TTL: "1"}), ("ttl-none", {})):
        made = claim(name, context.shared_class, "1Mi")
        made["metadata"] |= {"labels": {RUN: "no-such-run"}, "annotations": notes}
        claims.append(made)
    context.kubectl.apply(claims, NAMESPACE)
    user = context.pod("ttl-user", "sleep 45", claims={"ttl-used": "/v"})
    context.kubectl.apply([user], NAMESPACE)
    try:
        context.wait("pod/ttl-user", "condition=Ready", 60)
        cronjobs.run(context, CRONJOB)
        figures["log"] = cronjobs.run(context, CRONJOB)
        left = {item["metadata"]["name"] for item in context.kubectl.get("pvc", "-n", NAMESPACE)}
        require("ttl-gone" not in left, "the claim of a deleted run still exists")
        require({"ttl-used", "ttl-none"} <= left, f"a claim was deleted by mistake; remaining: {sorted(left)}")
    finally:
        context.kubectl("delete", "pod", "ttl-user", "-n", NAMESPACE, "--now", check=False)
        context.kubectl("delete", "pvc", "ttl-gone", "ttl-used", "ttl-none", "-n", NAMESPACE, "--ignore-not-found",
                        "--wait=false", check=False)  # fmt: skip
