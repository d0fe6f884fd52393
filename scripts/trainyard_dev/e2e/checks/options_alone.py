"""Each option alone, between two installations: installed, upgraded, uninstalled, with what it held before."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

from trainyard.chart.release import removal
from trainyard.components import MONITORING
from trainyard_dev.chart import package as chart
from trainyard_dev.e2e import options, releases
from trainyard_dev.e2e.checks import trail
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.options import LOGS
from trainyard_dev.e2e.recorder import require

LOGIN = "login"
IMAGES = ("dex",)  # what runs here beside `options.IMAGES`
ALONE = {MONITORING: "uninstall.monitoring", LOGS: "uninstall.logs", LOGIN: "uninstall.login"}
TITLES = {
    ALONE[MONITORING]: "monitoring alone: installed, upgraded, uninstalled; each time its series of before are there",
    ALONE[LOGS]: "logs alone: installed, upgraded; of a pod that wrote on all the time no line is lost",
    ALONE[LOGIN]: "log-in alone: installed, upgraded; passwords and signing keys are those of before",
}
# What an upgrade changes so that each option's pods start again.
LONGER: dict[str, Any] = {"prometheus": {"retention": "14d"}}
SOONER: dict[str, Any] = {"flushEvery": "5s"}
ISSUER = "https://login.invalid:8443/dex"  # asked by its Service
PAGE = f"/api/v1/namespaces/{SYSTEM}/services/https:{releases.RELEASE}-login:443/proxy/dex"
PEOPLE = [{"email": "ada@example.org", "groups": ["vision-members"]}]
HELD = (f"{releases.RELEASE}-login-people", f"{releases.RELEASE}-login-tls")


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

    def login(self, values: str) -> None:
        """There is a release with logs; leaves one with log-in alone."""
        context = self.context
        with context.recorder.check(ALONE[LOGIN], TITLES[ALONE[LOGIN]]) as figures:
            removal.uninstall(releases.installed(context), list[str]().append)
            self.require_gone()
            figures["install_seconds"] = self._issuer("install", values)
            held = self._held()
            figures["upgrade_seconds"] = self._issuer("upgrade", values, lifetimes={"token": "10m"})
            require(self._held() == held, "an upgrade made passwords, certificate or signing key anew")

    def _issuer(self, verb: str, values: str, **more: Any) -> float:
        login = {"enabled": True, "people": PEOPLE, **more}
        text = json.dumps({"global": {"contract": {"login": {"issuer": ISSUER}}}, LOGIN: login})
        with tempfile.TemporaryDirectory() as folder, options.values([]) as off:
            base, on = Path(folder) / "base.yaml", Path(folder) / "login.yaml"
            base.write_text(values)
            on.write_text(text)
            seconds = releases.put(self.context, verb, chart.package(), [base, off, on])
        self.context.contract = releases.read_contract(self.context.kubectl)
        page = json.loads(self.context.kubectl("get", "--raw", f"{PAGE}/.well-known/openid-configuration").stdout)
        require(page["issuer"] == ISSUER, f"the issuer calls itself {page['issuer']}")
        return seconds

    def _held(self) -> dict[str, Any]:
        """What has to last: people with their passwords, the certificate, and the keys that tokens are signed with."""
        kubectl = self.context.kubectl
        keys = json.loads(kubectl("get", "--raw", f"{PAGE}/keys").stdout)["keys"]
        found: dict[str, Any] = {"keys": sorted(key["kid"] for key in keys)}
        for name in HELD:
            secret = kubectl.get("secret", name, "-n", SYSTEM)[0]
            found[name] = {key: base64.b64decode(value) for key, value in secret["data"].items()}
        return found

    def end(self) -> None:
        """Takes the pod away that writes."""
        self.lines.remove()
