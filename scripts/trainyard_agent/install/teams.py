"""The part of teams that Helm can't manage: accounts that Kubernetes itself makes, and namespaces of removed teams."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from trainyard_agent.api import Api, ApiError, delete, needed
from trainyard_agent.clock import Clock
from trainyard_agent.say import PlatformError, say

MANAGER = "trainyard-setup"
TEAM = "trainyard.io/team"
NAMESPACES = "/api/v1/namespaces"


def _closed(api: Api, team: str) -> str:
    """Turn off token mounting for the default service account of a team's namespace; "" or why not yet."""
    path = f"{NAMESPACES}/{team}/serviceaccounts/default"
    try:
        if api.get(path).get("automountServiceAccountToken") is False:
            return ""
        api.merge(path, {"automountServiceAccountToken": False}, manager=MANAGER)
    except ApiError as error:
        return error.message
    say(f"team {team}: pods of the default service account get no token")
    return ""


def close_accounts(api: Api, teams: list[str], clock: Clock) -> None:
    """Give pods that name no service account no token. Raises PlatformError when an account does not appear in time."""
    for team in teams:
        clock.wait(f"service account of team {team}", partial(_closed, api, team), quiet=True)


def _say_what_stays(team: str, volumes: list[dict[str, Any]], archive: str, buckets: list[dict[str, Any]]) -> None:
    for volume in volumes:
        spec = volume["spec"]
        if (spec.get("claimRef") or {}).get("namespace") != team:
            continue
        claim = f"{team}/{spec['claimRef']['name']}"
        nfs = spec.get("nfs") or {}
        place = f" at {nfs['path']} on {nfs['server']}" if nfs else ""
        if nfs.get("readOnly"):
            continue
        if spec["persistentVolumeReclaimPolicy"] == "Retain":
            say(f"kept: files of claim {claim}{place}, volume {volume['metadata']['name']}")
        elif archive and spec.get("storageClassName") == archive:
            say(f"kept: files of claim {claim}, archived beside their place{place}")
        else:
            say(f"lost: files of claim {claim}, whose class {spec.get('storageClassName', '?')} keeps nothing")
    for bucket in buckets:
        if bucket.get("teams") == "own":
            say(f"kept: s3://{bucket['name']}/{team}/")
        elif bucket.get("teams") == "logs":
            say(f"kept: s3://{bucket['name']}/{team}/, each log for {bucket['expireDays']} days")


def remove(api: Api, plan: dict[str, Any], buckets: list[dict[str, Any]]) -> list[str]:
    """Start deleting the namespaces of teams that are gone from the values; returns them. Raises PlatformError."""
    with needed("namespaces of teams can't be listed"):
        found = api.get(NAMESPACES, {"labelSelector": f"{plan['label']},{TEAM}"}).get("items", [])
        gone = [item for item in found if item["metadata"]["name"] not in plan["teams"]]
        volumes = api.get("/api/v1/persistentvolumes").get("items", []) if gone else []
    for item in gone:
        team = item["metadata"]["name"]
        if item["metadata"].get("deletionTimestamp"):
            continue
        say(f"team {team} is gone from the values: its jobs are stopped and its namespace is deleted")
        _say_what_stays(team, volumes, plan["archive"], buckets)
        if said := delete(api, f"{NAMESPACES}/{team}"):
            raise PlatformError(f"namespace {team} can't be deleted: {said}")
    return [item["metadata"]["name"] for item in gone]


def _still_there(api: Api, team: str) -> str:
    """The reason why a namespace is not gone yet; "" once it is."""
    try:
        found = api.get(f"{NAMESPACES}/{team}")
    except ApiError as error:
        return "" if error.status == 404 else error.message
    held = [c["message"] for c in found.get("status", {}).get("conditions", [])
            if c["status"] == "True" and c["type"].endswith("Remaining")]  # fmt: skip
    return "; ".join(held) or "it is being deleted"


def await_removed(api: Api, teams: list[str], clock: Clock) -> None:
    """Wait until these namespaces are gone. One that is still there at the deadline is reported, and goes later."""
    left = dict.fromkeys(teams, "")
    while left:
        for team in list(left):
            left[team] = _still_there(api, team)
            if not left[team]:
                say(f"team {team}: namespace and jobs are gone")
                del left[team]
        if left and time.monotonic() > clock.end:
            for team, reason in left.items():
                say(f"namespace {team} is still ending, its queue stays until the next upgrade: {reason}")
            return
        if left:
            time.sleep(1.0)
