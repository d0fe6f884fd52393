"""A lasting log-in: uses stored tokens while they are fresh, then renews them, and logs in again if that fails."""

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
    """Issuer, client and method of a log-in."""

    issuer: str
    client: str
    ca: str = ""  # file with the issuer's certificate authority; "": the machine's authorities
    scopes: tuple[str, ...] = ()
    device: bool = False
    port: int = 0

    @property
    def arguments(self) -> list[str]:
        """The settings as options of `trainyard login`."""
        found = [f"--issuer={self.issuer}", f"--client-id={self.client}"]
        found += [f"--issuer-ca={self.ca}"] if self.ca else []
        found += [f"--scope={scope}" for scope in self.scopes]
        found += ["--device"] if self.device else []
        return found + ([f"--port={self.port}"] if self.port else [])


def current(settings: Settings, *, interactive: bool) -> Tokens:
    """Tokens that are currently valid.

    Args:
        interactive: whether a user can log in; if not, no log-in is started.

    Raises:
        TrainyardError: the issuer refuses, or a log-in is needed and not possible.
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
                if error.error == "invalid_grant":  # the refresh token will never be accepted again
                    store.forget(settings.issuer, settings.client)
                refused = f"the issuer did not renew the log-in ({error})"
        if not interactive:
            raise TrainyardError(
                refused or ("your log-in has expired" if kept else "you are not logged in"),
                where=settings.issuer,
                hint=f"run `trainyard login {' '.join(settings.arguments)}`",
            )
        if refused:
            print(f"{refused}; log in again", file=sys.stderr)
        return _keep(settings, anew(settings, asker))


def anew(settings: Settings, asker: IssuerClient) -> Tokens:
    """Lets the user log in: in a browser here, or with a code if there is no browser. Raises as these do."""
    issuer = discover(asker, settings.issuer, settings.scopes)
    if settings.device or (issuer.device and not has_browser()):
        return device.log_in(asker, issuer, settings.client)
    return browser.log_in(asker, issuer, settings.client, port=settings.port)


def log_in(settings: Settings) -> Tokens:
    """Logs in now, whatever tokens are stored, and stores the new tokens."""
    tokens = anew(settings, IssuerClient(settings.ca))
    with store.held(settings.issuer, settings.client):
        return _keep(settings, tokens)


def renewed(asker: IssuerClient, issuer: Issuer, client: str, kept: Tokens) -> Tokens:
    """Renews the stored tokens. Raises RefusedError if the issuer refuses, for example because the user was removed."""
    form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token, "client_id": client}
    return received(asker.post(issuer.token, form), issuer.url, client, kept=kept.refresh_token)


def log_out(settings: Settings) -> bool:
    """Deletes the tokens, and revokes the refresh token if the issuer can; returns whether there were any."""
    with store.held(settings.issuer, settings.client):
        kept = store.read(settings.issuer, settings.client, strict=False)
        there = store.forget(settings.issuer, settings.client)
        if kept and kept.refresh_token:
            try:
                asker = IssuerClient(settings.ca)
                if end := discover(asker, settings.issuer).revocation:
                    asker.post(end, {"token": kept.refresh_token, "client_id": settings.client})
            except (TrainyardError, RefusedError) as error:
                print(f"warning: logging out at the issuer failed: {error}", file=sys.stderr)
        return there


def has_browser() -> bool:
    """Whether a browser of this machine would show a window to the user."""
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
