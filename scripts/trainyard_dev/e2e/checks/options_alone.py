"""Each option alone, between two installations: installed, upgraded, uninstalled, with what it held before."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from trainyard.chart.release import removal
from trainyard.components import MONITORING
from trainyard_dev.chart import package as chart
from trainyard_dev.e2e import options, releases
from trainyard_dev.e2e.checks import trail
from trainyard_dev.e2e.context import NAMESPACE, Context, member
from trainyard_dev.e2e.options import LOGS, SERVING
from trainyard_dev.e2e.recorder import require

ALONE = {MONITORING: "uninstall.monitoring", LOGS: "uninstall.logs", SERVING: "uninstall.serving"}
TITLES = {
    ALONE[MONITORING]: "monitoring alone: installed, upgraded, uninstalled; each time its series of before are there",
    ALONE[LOGS]: "logs alone: installed, upgraded; of a pod that wrote on all the time no line is lost",
    ALONE[SERVING]: "serving alone: installed, upgraded; members may put models into service as long as it is on",
}
# What an upgrade changes so that each option's pods start again.
LONGER: dict[str, Any] = {"prometheus": {"retention": "14d"}}
SOONER: dict[str, Any] = {"flushEvery": "5s"}
FEWER: dict[str, Any] = {"quota": {"pods": 7}}
QUOTA = "team-serving"


class Alone:
    """What both held before the release went, and the way of each from there."""

    def __init__(self, context: Context) -> None:
        self.context, self.lines = context, trail.Lines(context)
        self.born: trail.Born | None = None
        self.brought: dict[str, options.Objects] = {}

    def both(self) -> None:
        """On a release of this version: both at work, switched on where they are off."""
        self.brought = options.objects(self.context)
        if not all(self.brought.values()):
            releases.put(self.context, "upgrade", chart.package(), change=options.ON)
            self.context.contract = releases.read_contract(self.context.kubectl)
            self.brought = options.objects(self.context)
        self.lines.begin()
        self.born = trail.born(self.context)

    def require_gone(self) -> None:
        """After an uninstallation: of options nothing but the documented. Raises CheckError."""
        left = options.left(self.context, self.brought)
        require(not left, f"of options there is still {', '.join(left)}")
        options.require_claims(self.context, self.brought)

    def put(self, verb: str, values: str, option: str, **more: Any) -> float:
        """`helm install` or `helm upgrade` with these values (YAML) and one of the options; its seconds.

        Args:
            more: further values of the option.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, options.values([option], **{option: more}) as on:
            file.write(values)
            file.flush()
            seconds = releases.put(self.context, verb, chart.package(), [Path(file.name), on])
        self.context.contract = releases.read_contract(self.context.kubectl)
        self.brought = options.objects(self.context)
        found = [one for one, objects in self.brought.items() if objects]
        require(found == [option], f"{option} was switched on alone, the release has {found}")
        self.brought = {option: self.brought[option]}
        return seconds

    def monitoring(self, values: str) -> None:
        """It is installed alone; leaves no release."""
        context = self.context
        with context.recorder.check(ALONE[MONITORING], TITLES[ALONE[MONITORING]]) as figures:
            born = trail.require_kept(context, self.born)
            figures["upgrade_seconds"] = self.put("upgrade", values, MONITORING, **LONGER)
            trail.require_kept(context, born)
            figures["said"] = said = list[str]()
            removal.uninstall(releases.installed(context), said.append)
            self.require_gone()

    def logs(self, values: str) -> None:
        """There is no release; leaves one with it."""
        context = self.context
        with context.recorder.check(ALONE[LOGS], TITLES[ALONE[LOGS]]) as figures:
            figures["install_seconds"] = self.put("install", values, LOGS)
            figures["after the installation"] = self.lines.complete()
            figures["upgrade_seconds"] = self.put("upgrade", values, LOGS, **SOONER)
            figures["after the upgrade"] = self.lines.complete()

    def serving(self, values: str) -> None:
        """There is a release with another option; leaves one with this alone."""
        context = self.context
        with context.recorder.check(ALONE[SERVING], TITLES[ALONE[SERVING]]) as figures:
            require(self._may_serve() == "no", "a member may put models into service while the option is off")
            self.removed()
            figures["install_seconds"] = self.put("install", values, SERVING)
            require(self._may_serve() == "yes", "a member may put no model into service")
            figures["upgrade_seconds"] = self.put("upgrade", values, SERVING, **FEWER)
            found = context.kubectl.get("resourcequota", QUOTA, "-n", NAMESPACE)[0]["spec"]["hard"]
            require(found.get("pods") == str(FEWER["quota"]["pods"]), f"after the upgrade a team may have {found}")

    def _may_serve(self) -> str:
        words = (*member(NAMESPACE), "auth", "can-i", "create", "deployments.apps", "-n", NAMESPACE)
        return self.context.kubectl(*words, check=False).stdout.strip()

    def removed(self) -> None:
        """No release, and nothing of its options. Raises CheckError."""
        removal.uninstall(releases.installed(self.context), list[str]().append)
        self.require_gone()

    def other(self, verb: str, values: str, more: dict[str, Any]) -> float:
        """`helm install` or `upgrade` with these values (YAML), `options.ALL` all off, and some more; its seconds."""
        with tempfile.TemporaryDirectory() as folder, options.values([]) as off:
            base, on = Path(folder) / "base.yaml", Path(folder) / "more.yaml"
            base.write_text(values)
            on.write_text(json.dumps(more))
            seconds = releases.put(self.context, verb, chart.package(), [base, off, on])
        self.context.contract = releases.read_contract(self.context.kubectl)
        return seconds

    def end(self) -> None:
        """Takes the pod away that writes."""
        self.lines.remove()
