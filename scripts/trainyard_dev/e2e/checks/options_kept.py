"""Data that options keep while a release with all of them is removed and reinstalled: series, lines, rights, keys."""

import base64
import json
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from trainyard.components import MONITORING
from trainyard_dev.e2e import options, releases
from trainyard_dev.e2e.checks import trail
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context, member
from trainyard_dev.e2e.options import LOGS, SERVING
from trainyard_dev.e2e.recorder import require

LOGIN, NOTEBOOKS = "login", "notebooks"
IDS = {name: f"uninstall.{name}" for name in (MONITORING, LOGS, SERVING, LOGIN, NOTEBOOKS)}
TITLES = {
    IDS[MONITORING]: "monitoring, reinstalled and upgraded: it keeps its series each time",
    IDS[LOGS]: "logs, reinstalled and upgraded: no line of a pod that writes all the time is lost",
    IDS[SERVING]: "serving: members may serve models only while it is installed; an upgrade changes its quota",
    IDS[LOGIN]: "login, reinstalled and upgraded: it keeps its passwords and signing keys",
    IDS[NOTEBOOKS]: "notebooks, reinstalled and upgraded: the hub keeps its keys",
}
ISSUER = "https://login.invalid:8443/dex"  # reached through its Service
URL = "https://notebooks.invalid"
SPACE = f"{SYSTEM}-notebooks"
# Nobody logs in here: names need not resolve.
VALUES: dict[str, Any] = {
    **options.sets(options.ALL),
    "global": {"contract": {"login": {"issuer": ISSUER}}},
    LOGIN: {
        "enabled": True,
        "people": [{"email": "ada@example.org", "groups": ["vision-members"]}],
        "notebooks": {"redirectURIs": [f"{URL}/hub/oauth_callback"], "namespace": SPACE},
    },
    NOTEBOOKS: {
        "enabled": True,
        "teams": ["*"],
        "url": URL,
        "oidc": {"authorizeUrl": f"{ISSUER}/auth", "tokenUrl": f"{ISSUER}/token"},
    },
}
PODS = 7  # of a team's models in service, after the upgrade
# Changes that restart each option's pods.
CHANGES: dict[str, Any] = {
    MONITORING: {"prometheus": {"retention": "14d"}},
    LOGS: {"flushEvery": "5s"},
    SERVING: {"quota": {"pods": PODS}},
    LOGIN: {"lifetimes": {"token": "10m"}},
    NOTEBOOKS: {"culling": {"idleSeconds": 7200}},
}
PAGE = f"/api/v1/namespaces/{SYSTEM}/services/https:{releases.RELEASE}-login:443/proxy/dex"
PEOPLE = (f"{releases.RELEASE}-login-people", f"{releases.RELEASE}-login-tls")
HUB = f"{releases.RELEASE}-notebook-hub"
ANSWER_S = 60


class OptionsRelease:
    """A release with all options, and the data of each at the last check."""

    def __init__(self, context: Context) -> None:
        self.context, self.lines = context, trail.Lines(context)
        self.values = ""  # of the release, as YAML
        self.born: trail.ProcessStart | None = None
        self.brought: dict[str, options.Objects] = {}
        self.people: dict[str, Any] = {}
        self.keys: dict[str, bytes] = {}

    def on(self) -> None:
        """All options working on the installed release of this version; switched on if they were off."""
        self._read()
        if HUB not in releases.installed(self.context).helm("get", "manifest", releases.RELEASE):
            self.put("upgrade", VALUES)
            self._read()
        self.brought = options.objects(self.context)
        self.lines.begin()
        self.born = trail.born(self.context)

    def _read(self) -> None:
        self.values = releases.installed(self.context).helm("get", "values", releases.RELEASE, "-o", "yaml")

    def put(self, verb: str, more: dict[str, Any]) -> float:
        """`helm install` or `helm upgrade` with the release's values and further ones; returns its seconds."""
        with tempfile.TemporaryDirectory(prefix="options-") as folder:
            held, on_top = Path(folder) / "held.yaml", Path(folder) / "more.yaml"
            held.write_text(self.values)
            on_top.write_text(yaml.safe_dump(more))
            return releases.put(self.context, verb, [held, on_top])

    def require_gone(self) -> None:
        """After an uninstallation, options left only what is documented, and no permissions. Raises CheckError."""
        left = options.left(self.context, self.brought)
        require(not left, f"objects of options still exist: {', '.join(left)}")
        options.require_claims(self.context, self.brought)
        require(self._may_serve() == "no", "a member may serve models without a release")

    def back(self) -> dict[str, Any]:
        """After the installation: checks earlier data and rights; notes data before the upgrade. Returns figures."""
        self.born = trail.require_kept(self.context, self.born)
        require(self._may_serve() == "yes", "a member may not serve models")
        self.people, self.keys = self._people(), self._hub()
        return {"lines": self.lines.complete()}

    def upgraded(self) -> None:
        """One upgrade that restarts all options, and a check of each one's data."""
        recorder = self.context.recorder
        with recorder.check(IDS[MONITORING], TITLES[IDS[MONITORING]]) as figures:
            figures["upgrade_seconds"] = self.put("upgrade", CHANGES)
            trail.require_kept(self.context, self.born)
        with recorder.check(IDS[LOGS], TITLES[IDS[LOGS]]) as figures:
            figures |= self.lines.complete()
        with recorder.check(IDS[SERVING], TITLES[IDS[SERVING]]):
            found = self.context.kubectl.get("resourcequota", "team-serving", "-n", NAMESPACE)[0]["spec"]["hard"]
            require(found.get("pods") == str(PODS), f"after the upgrade a team's quota is {found}")
        with recorder.check(IDS[LOGIN], TITLES[IDS[LOGIN]]):
            require(self._people() == self.people, "an upgrade replaced passwords, certificate or signing key")
        with recorder.check(IDS[NOTEBOOKS], TITLES[IDS[NOTEBOOKS]]):
            require(self._hub() == self.keys, "an upgrade replaced the hub's keys")

    def _may_serve(self) -> str:
        words = (*member(NAMESPACE), "auth", "can-i", "create", "deployments.apps", "-n", NAMESPACE)
        return self.context.kubectl(*words, check=False).stdout.strip()

    def _people(self) -> dict[str, Any]:
        """Data that must survive: people with their passwords, the certificate, and the keys that sign tokens."""
        page = self._page(".well-known/openid-configuration")
        require(page["issuer"] == ISSUER, f"the issuer calls itself {page['issuer']}")
        found: dict[str, Any] = {"keys": sorted(key["kid"] for key in self._page("keys")["keys"])}
        return found | {name: self._secret(name, SYSTEM) for name in PEOPLE}

    def _page(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.context.kubectl("get", "--raw", f"{PAGE}/{path}").stdout)
        return found

    def _hub(self) -> dict[str, bytes]:
        """The keys of a running hub, through a forwarded port: its network policy excludes the API server's proxy."""
        with (
            self.context.kubectl.forward(f"service/{HUB}", 8081, SPACE) as port,
            urllib.request.urlopen(f"http://127.0.0.1:{port}/hub/api/", timeout=ANSWER_S) as answer,
        ):
            said = json.load(answer)
        require("version" in said, f"the hub answered {said}")
        return self._secret(HUB, SPACE)

    def _secret(self, name: str, namespace: str) -> dict[str, bytes]:
        data = self.context.kubectl.get("secret", name, "-n", namespace)[0]["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def end(self) -> None:
        """Removes the pod that writes lines."""
        self.lines.remove()
