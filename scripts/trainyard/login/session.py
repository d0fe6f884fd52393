"""A log-in that lasts: kept tokens while they are fresh, renewed ones after that, a new log-in where that fails."""

import os
import sys
import time
import webbrowser
from dataclasses import dataclass

from trainyard.errors import TrainyardError
from trainyard.login import browser, device, store
from trainyard.login.asking import IssuerClient, RefusedError
from trainyard.login.issuer import Issuer, discover
from trainyard.login.tokens import Tokens, received


@dataclass(frozen=True)
class Settings:
    """At whom, as what and how one logs in."""

    issuer: str
    client: str
    ca: str = ""  # file with the authority of the issuer's certificate; "": the machine's
    scopes: tuple[str, ...] = ()
    device: bool = False
    port: int = 0

    @property
    def arguments(self) -> list[str]:
        """The same as options of `trainyard login`."""
        found = [f"--issuer={self.issuer}", f"--client-id={self.client}"]
        found += [f"--issuer-ca={self.ca}"] if self.ca else []
        found += [f"--scope={scope}" for scope in self.scopes]
        found += ["--device"] if self.device else []
        return found + ([f"--port={self.port}"] if self.port else [])


def current(settings: Settings, *, interactive: bool) -> Tokens:
    """Tokens that can be used now.

    Args:
        interactive: a person is there to log in; without, nobody is asked.

    Raises:
        TrainyardError: the issuer refuses, or somebody would have to log in and nobody is there.
    """
    with store.held(settings.issuer, settings.client):
        kept = store.read(settings.issuer, settings.client)
        if kept and kept.is_fresh(time.time()):
            return kept
        asker = IssuerClient(settings.ca)
        refused = ""
        if kept and kept.refresh_token:
            issuer = discover(asker, settings.issuer, settings.scopes)
            try:
                return _keep(settings, renewed(asker, issuer, settings.client, kept))
            except RefusedError as error:
                if error.error == "invalid_grant":  # it will not be taken again, whatever else may
                    store.forget(settings.issuer, settings.client)
                refused = f"the issuer does not renew the log-in ({error})"
        if not interactive:
            raise TrainyardError(
                refused or ("the log-in has ended" if kept else "nobody is logged in"),
                where=settings.issuer,
                hint=f"run `trainyard login {' '.join(settings.arguments)}`",
            )
        if refused:
            print(f"{refused}; log in again", file=sys.stderr)
        return _keep(settings, anew(settings, asker))


def anew(settings: Settings, asker: IssuerClient) -> Tokens:
    """Has the person log in: in a browser here, or with a code where there is none. Raises as these do."""
    issuer = discover(asker, settings.issuer, settings.scopes)
    if settings.device or (issuer.device and not has_browser()):
        return device.log_in(asker, issuer, settings.client)
    return browser.log_in(asker, issuer, settings.client, port=settings.port)


def log_in(settings: Settings) -> Tokens:
    """A log-in now, whatever is kept; the tokens are kept afterwards."""
    tokens = anew(settings, IssuerClient(settings.ca))
    with store.held(settings.issuer, settings.client):
        return _keep(settings, tokens)


def renewed(asker: IssuerClient, issuer: Issuer, client: str, kept: Tokens) -> Tokens:
    """New tokens for the kept one. Raises RefusedError when the issuer gives none: to a person who is gone, say."""
    form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token, "client_id": client}
    return received(asker.post(issuer.token, form), issuer.url, client, kept=kept.refresh_token)


def log_out(settings: Settings) -> bool:
    """Forgets the tokens, and has the issuer forget the one that renews where it can; whether there were any."""
    with store.held(settings.issuer, settings.client):
        kept = store.read(settings.issuer, settings.client, strict=False)
        there = store.forget(settings.issuer, settings.client)
        if kept and kept.refresh_token:
            try:
                asker = IssuerClient(settings.ca)
                if end := discover(asker, settings.issuer).revocation:
                    asker.post(end, {"token": kept.refresh_token, "client_id": settings.client})
            except (TrainyardError, RefusedError) as error:
                print(f"warning: the issuer did not get the log-out: {error}", file=sys.stderr)
        return there


def has_browser() -> bool:
    """Whether the user would see a window of this machine's browser."""
    if os.environ.get("BROWSER"):
        return True
    if os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _keep(settings: Settings, tokens: Tokens) -> Tokens:
    store.write(settings.issuer, settings.client, tokens, settings.ca)
    return tokens
