"""Upgrades CRDs, which Helm only installs, to the state of this release before an upgrade. It never downgrades them."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from trainyard_agent.api import Api, found, needed
from trainyard_agent.clock import Clock
from trainyard_agent.install.setup import established
from trainyard_agent.say import PlatformError, say

MANAGER = "trainyard-crds"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VERSION = "trainyard.io/crd-version"  # the component's version, written at packaging
# The CRD's generation after the last move. If somebody has changed the CRD since, its generation differs, and the next
# upgrade moves it back; if both this and the digest match, the chart leaves the hook out.
GENERATION = "trainyard.io/crd-generation"


def version(crd: dict[str, Any]) -> tuple[int, ...]:
    """The component version that a CRD was packaged with; () without the annotation."""
    text = crd["metadata"].get("annotations", {}).get(VERSION, "")
    return tuple(int(number) for number in re.findall(r"\d+", text))


def must_stay(crd: dict[str, Any], held: dict[str, Any] | None) -> str:
    """Why the cluster's CRD is left as it is, or "".

    Raises:
        PlatformError: a version of it is gone from this release, and objects may still be stored in that version.
    """
    if held is None:
        return ""
    if version(held) > version(crd):
        return f"the cluster has it from {held['metadata']['annotations'][VERSION]}, which is newer"
    offered = {entry["name"] for entry in crd["spec"]["versions"]}
    lost = [stored for stored in held.get("status", {}).get("storedVersions", []) if stored not in offered]
    if lost:
        name = crd["metadata"]["name"]
        raise PlatformError(
            f"CRD {name} must not lose version {', '.join(lost)}: objects are stored in it. Rewrite them in "
            f"{' or '.join(sorted(offered))}, remove it from status.storedVersions, then upgrade again"
        )
    return ""


def move(api: Api, crds: list[dict[str, Any]], clock: Clock) -> None:
    """Apply all CRDs or none: each is checked and tried with a dry run before the first one changes."""
    todo = []
    for crd in crds:
        name = crd["metadata"]["name"]
        with needed(f"CRD {name} can't be read"):
            held = found(api, f"{PATH}/{name}")
        reason = must_stay(crd, held)
        if reason:
            say(f"CRD {name} stays: {reason}")
            continue
        _apply(api, crd, dry_run=True)
        todo.append((crd, held))
    for crd, held in todo:
        name = crd["metadata"]["name"]
        after = _apply(api, crd)
        before = (held or {}).get("metadata", {}).get("generation")
        now = after["metadata"]["generation"]
        same = f"was up to date (generation {now})"
        say(f"CRD {name} " + ("made" if held is None else same if before == now else f"moved, {before} to {now}"))
        if after["metadata"].get("annotations", {}).get(GENERATION, "1") != str(now):
            noted = {"metadata": {"annotations": {GENERATION: str(now)}}}
            with needed(f"CRD {name} was updated, but its generation was not recorded"):
                api.merge(f"{PATH}/{name}", noted, manager=MANAGER)
    for crd, _ in todo:
        name = crd["metadata"]["name"]
        clock.wait(f"CRD {name}", partial(established, api, name))


def _apply(api: Api, crd: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    """Server-side apply. Helm owns the fields since the installation; this takes them over."""
    with needed(f"CRD {crd['metadata']['name']} was not applied"):
        return api.apply(f"{PATH}/{crd['metadata']['name']}", crd, manager=MANAGER, dry_run=dry_run)


def run(folder: str, timeout: float) -> int:
    """Apply the CRD in every `*.json` of the folder. Raises PlatformError with the reason."""
    crds = [json.loads(file.read_text()) for file in sorted(Path(folder).glob("*.json"))]
    move(Api(), crds, Clock(timeout))
    return 0
