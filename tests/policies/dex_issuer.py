"""A real Dex as the chart configures it, and people who log in at its pages."""

import html
import http.cookiejar
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from rendering import one
from trainyard_dev import tools
from trainyard_dev.apiserver.processes import Server

START_S = 30.0
FORM = re.compile(r'<form method="post" action="([^"]*)"')


class Dex:
    """The issuer of rendered objects on a port of this machine; it can be begun again with other people."""

    def __init__(self, folder: Path, objects: list[dict[str, Any]], port: int, telemetry: int) -> None:
        self.folder, self.objects, self.port, self.telemetry = folder, objects, port, telemetry
        self.storage: dict[str, Any] = {}
        self.url = one(objects, "ConfigMap", "trainyard-login")["data"]["issuer"]
        self.ca = folder / "ca.crt"
        pair = one(objects, "Secret", "trainyard-login-tls")["stringData"]
        for key in ("tls.crt", "tls.key", "ca.crt"):
            (folder / key).write_text(pair[key])
        self.config: dict[str, Any] = yaml.safe_load(
            one(objects, "Secret", "trainyard-login")["stringData"]["config.yaml"]
        )
        self.tls = ssl.create_default_context(cafile=str(self.ca))
        self._server: Server | None = None

    @property
    def passwords(self) -> dict[str, str]:
        """The password that was made for each email."""
        held = one(self.objects, "Secret", "trainyard-login-people")["stringData"]["people.json"]
        return {email: one["password"] for email, one in json.loads(held).items()}

    @property
    def hub_secret(self) -> str:
        """What the notebooks' hub proves itself with."""
        secret: str = one(self.objects, "Secret", "trainyard-notebooks-oidc")["stringData"]["client-secret"]
        return secret

    @property
    def log(self) -> str:
        """What it has said since it began."""
        return (self.folder / "dex.log").read_text()

    def start(self, **changed: Any) -> None:
        """Begins, or begins again, with these keys of its configuration changed; ready afterwards."""
        self.stop()
        made = self.config | {"telemetry": {"http": f"127.0.0.1:{self.telemetry}"}} | changed
        web = {"https": f"127.0.0.1:{self.port}", "tlsCert": str(self.folder / "tls.crt")}
        made["web"] = made["web"] | web | {"tlsKey": str(self.folder / "tls.key")}
        if made["storage"]["type"] == "kubernetes":
            made["storage"] = {"type": "kubernetes", "config": {**made["storage"]["config"], **self.storage}}
        file = self.folder / "config.yaml"
        file.write_text(yaml.safe_dump(made))
        env = {"NOTEBOOKS_SECRET": self.hub_secret}
        self._server = Server([tools.binary("dex"), "serve", file], self.folder / "dex.log", env)
        self._server.wait(self._ready, START_S)

    def stop(self) -> None:
        """Ends it, if it runs."""
        if self._server:
            self._server.stop()
        self._server = None

    def _ready(self) -> bool:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{self.telemetry}/healthz/ready", timeout=2).close()
            return True
        return False

    def ask(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """(status, JSON) of a form posted to one of its endpoints."""
        request = urllib.request.Request(f"{self.url}{path}", data=urllib.parse.urlencode(form).encode())
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@contextmanager
def dex(folder: Path, objects: list[dict[str, Any]], port: int, telemetry: int) -> Iterator[Dex]:
    """A Dex that is not begun yet, and is ended afterwards."""
    made = Dex(folder, objects, port, telemetry)
    try:
        yield made
    finally:
        made.stop()


class _Way(urllib.request.HTTPRedirectHandler):
    """Follows the issuer's redirects, but not to port 1, where nobody listens: what comes with it is looked at."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        return None if ":1/" in newurl else super().redirect_request(req, fp, code, msg, headers, newurl)


class Person:
    """Somebody with a browser: cookies, forms, and redirects that are followed, back to a program's port as well."""

    def __init__(self, issuer: Dex, email: str, password: str) -> None:
        self.issuer, self.email, self.password = issuer, email, password
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=issuer.tls), jar, _Way()
        )

    def get(self, url: str, form: dict[str, str] | None = None) -> tuple[str, str]:
        """(address, text) of the page where one ends up; pages of errors count."""
        data = urllib.parse.urlencode(form).encode() if form is not None else None
        try:
            with self._opener.open(url, data=data, timeout=20) as answer:
                return answer.url, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.headers.get("Location") or str(error.url), error.read().decode()

    def submit(self, page: tuple[str, str], form: dict[str, str]) -> tuple[str, str]:
        """Sends the form of a page."""
        found = FORM.search(page[1])
        assert found, page[1][-2000:]
        return self.get(urllib.parse.urljoin(page[0], html.unescape(found[1])), form)

    def log_in(self, url: str) -> tuple[str, str]:
        """Opens an address of the issuer and fills in email and password; the page at the end."""
        return self.submit(self.get(url), {"login": self.email, "password": self.password})

    def confirm(self, url: str, code: str) -> tuple[str, str]:
        """Opens the address of a device code, confirms it and logs in."""
        page = self.submit(self.get(url), {"user_code": code})
        return self.submit(page, {"login": self.email, "password": self.password})
