"""Log-in and notebooks, each alone between two installations: installed, upgraded, with what they held before."""

from __future__ import annotations

import base64
import json
import threading
import urllib.request
from typing import Any

from trainyard_dev.e2e import releases
from trainyard_dev.e2e.checks.options_alone import Alone
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.recorder import require

LOGIN, NOTEBOOKS = "login", "notebooks"
IDS = {LOGIN: "uninstall.login", NOTEBOOKS: "uninstall.notebooks"}
TITLES = {
    IDS[LOGIN]: "log-in alone: installed, upgraded; passwords and signing keys are those of before",
    IDS[NOTEBOOKS]: "notebooks alone, of another issuer: installed, upgraded; the hub's keys are those of before",
}
IMAGES = ("dex", "notebook-hub")  # what runs here beside `options.IMAGES`
ISSUER = "https://login.invalid:8443/dex"  # asked by its Service
PAGE = f"/api/v1/namespaces/{SYSTEM}/services/https:{releases.RELEASE}-login:443/proxy/dex"
PEOPLE = [{"email": "ada@example.org", "groups": ["vision-members"]}]
HELD = (f"{releases.RELEASE}-login-people", f"{releases.RELEASE}-login-tls")
SPACE = f"{SYSTEM}-notebooks"
KEYS, CLIENT = f"{releases.RELEASE}-notebook-hub", "trainyard-notebooks-oidc"
# Nobody logs in here: the issuer need not answer.
HUB_VALUES: dict[str, Any] = {
    "enabled": True, "teams": ["*"], "url": "https://notebooks.invalid",
    "oidc": {"issuer": ISSUER, "authorizeUrl": f"{ISSUER}/auth", "tokenUrl": f"{ISSUER}/token"},
}  # fmt: skip
SPACE_S, ANSWER_S = 120, 60


def login(alone: Alone, values: str) -> None:
    """There is a release with another option; leaves one with log-in alone."""
    context = alone.context
    with context.recorder.check(IDS[LOGIN], TITLES[IDS[LOGIN]]) as figures:
        alone.removed()
        figures["install_seconds"] = _issuer(alone, "install", values)
        held = _people(context)
        figures["upgrade_seconds"] = _issuer(alone, "upgrade", values, lifetimes={"token": "10m"})
        require(_people(context) == held, "an upgrade made passwords, certificate or signing key anew")


def notebooks(alone: Alone, values: str) -> None:
    """There is a release with another option; leaves one with notebooks alone."""
    context = alone.context
    with context.recorder.check(IDS[NOTEBOOKS], TITLES[IDS[NOTEBOOKS]]) as figures:
        alone.removed()
        # As docs/notebooks.md says: the hub waits for the Secret, which has its place once the chart is installed.
        client = threading.Thread(target=_client, args=(context,), daemon=True)
        client.start()
        figures["install_seconds"] = _hub(alone, "install", values)
        client.join()
        held = _secret(context, KEYS, SPACE)
        figures["upgrade_seconds"] = _hub(alone, "upgrade", values, culling={"idleSeconds": 7200})
        require(_secret(context, KEYS, SPACE) == held, "an upgrade made the hub's keys anew")


def _issuer(alone: Alone, verb: str, values: str, **more: Any) -> float:
    option = {"enabled": True, "people": PEOPLE, **more}
    contract = {"contract": {"login": {"issuer": ISSUER}}}
    seconds = alone.other(verb, values, {"global": contract, LOGIN: option, NOTEBOOKS: {"enabled": False}})
    page = json.loads(alone.context.kubectl("get", "--raw", f"{PAGE}/.well-known/openid-configuration").stdout)
    require(page["issuer"] == ISSUER, f"the issuer calls itself {page['issuer']}")
    return seconds


def _people(context: Context) -> dict[str, Any]:
    """What has to last: people with their passwords, the certificate, and the keys that tokens are signed with."""
    keys = json.loads(context.kubectl("get", "--raw", f"{PAGE}/keys").stdout)["keys"]
    found: dict[str, Any] = {"keys": sorted(key["kid"] for key in keys)}
    return found | {name: _secret(context, name, SYSTEM) for name in HELD}


def _hub(alone: Alone, verb: str, values: str, **more: Any) -> float:
    seconds = alone.other(verb, values, {NOTEBOOKS: {**HUB_VALUES, **more}, LOGIN: {"enabled": False}})
    # By a forwarded port: the hub's network policy keeps the API server's own proxy out.
    with (
        alone.context.kubectl.forward(f"service/{KEYS}", 8081, SPACE) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/hub/api/", timeout=ANSWER_S) as answer,
    ):
        said = json.load(answer)
    require("version" in said, f"the hub says {said}")
    return seconds


def _client(context: Context) -> None:
    """The Secret that a platform engineer makes, in the hub's namespace as soon as that is there."""
    context.kubectl("wait", f"namespace/{SPACE}", "--for=create", f"--timeout={SPACE_S}s")
    context.kubectl("create", "secret", "generic", CLIENT, "-n", SPACE, "--from-literal=client-secret=not-asked-for")


def _secret(context: Context, name: str, namespace: str) -> dict[str, bytes]:
    data = context.kubectl.get("secret", name, "-n", namespace)[0]["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}
