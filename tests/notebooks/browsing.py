"""A person with a browser, and their programs: cookies, redirects, forms, the issuer's page."""

import http.cookiejar
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from issuer import Issuer

PATIENCE_S = 180.0


@dataclass(frozen=True)
class Page:
    """What came: `url` is where redirects ended."""

    status: int
    url: str
    text: str

    @property
    def data(self) -> Any:
        """As JSON. Raises ValueError."""
        return json.loads(self.text)


class Person:
    """Somebody who is `name` at the issuer."""

    def __init__(self, name: str, hub: str, issuer: Issuer) -> None:
        self.name, self.hub = name, hub

        class Way(urllib.request.HTTPRedirectHandler):
            """At the issuer the person writes their name."""

            max_redirections = 20

            def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
                if newurl.startswith(f"{issuer.url}/auth"):
                    newurl += f"&person={urllib.parse.quote(name)}"
                return super().redirect_request(req, fp, code, msg, headers, newurl)

        trusted = ssl.create_default_context(cafile=str(issuer.ca))
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(self.cookies),
            urllib.request.HTTPSHandler(context=trusted),
            Way(),
        )

    def get(self, path: str) -> Page:
        """A page of the hub or of a notebook, redirects followed, logging in on the way."""
        return self._asked(urllib.request.Request(f"{self.hub}{path}"))

    def post(self, path: str, **form: str) -> Page:
        """A form that its page was looked at before, for the word against forgery."""
        self.get(path)
        url = f"{self.hub}{path}?{urllib.parse.urlencode({'_xsrf': self.xsrf})}"
        return self._asked(urllib.request.Request(url, urllib.parse.urlencode(form).encode()))

    @property
    def xsrf(self) -> str:
        """The word by which the hub knows that its own page asks."""
        return next(one.value or "" for one in self.cookies if one.name == "_xsrf" and one.path.startswith("/hub"))

    def token(self) -> str:
        """A token that they make for themselves at the hub's pages. Raises ValueError when they get none."""
        self.get("/hub/token")
        url = f"{self.hub}/hub/api/users/{urllib.parse.quote(self.name)}/tokens?_xsrf={self.xsrf}"
        made = self._asked(urllib.request.Request(url, b"{}", {"Content-Type": "application/json"}))
        return str(made.data["token"])

    def start(self, **options: str) -> Page:
        """Starts the notebook and waits until it answers, or until the hub says why not."""
        page = self.post("/hub/spawn", **options)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            page = self.get(self.path)
            if page.url.endswith(self.path) and page.status == 200 and page.text.startswith("{"):
                return page
            if page.status == 424:  # not running, and nobody starts it: the hub had just begun
                self.post("/hub/spawn", **options)
            told = self.get(f"/hub/spawn-pending/{urllib.parse.quote(self.name)}")
            if "Spawn failed" in told.text or told.status == 500:
                return told
            time.sleep(0.3)
        return page

    @property
    def path(self) -> str:
        """Where their notebook is."""
        return f"/user/{urllib.parse.quote(self.name, safe='@~')}/"  # as the hub writes it

    def _asked(self, request: urllib.request.Request) -> Page:
        try:
            with self._opener.open(request, timeout=30) as answer:
                return Page(answer.status, answer.url, answer.read().decode())
        except urllib.error.HTTPError as error:
            return Page(error.code, error.url, error.read().decode())


def ask(url: str, token: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
    """(status, JSON) of the hub's API for a token, as a program asks it."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": f"token {token}"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read().decode() or "{}")
