"""Log-in of members of teams with notebooks, by the issuer whose tokens the API server accepts, too.

The person's ID token is in the hub's state of them, so that their notebook can get it; the refresh token is there,
encrypted. A person whose token can't be renewed has left, or has to log in again.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from oauthenticator.generic import GenericOAuthenticator
from tornado import web
from tornado.httpclient import HTTPClientError
from traitlets import Instance

from notebook_hub import names, tokens
from notebook_hub.settings import Settings, Team

Object = dict[str, Any]
# While the issuer does not answer, it is unknown who has left, so that no notebook is ended for so long.
SILENCE_S = 3600.0


class MemberAuthenticator(GenericOAuthenticator):
    """OIDC, with the teams of the settings."""

    settings: Any = Instance(Settings, config=True, help="What the site decides.")
    seal: Any = Instance(tokens.Seal, config=True, help="Closes what makes new tokens.")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._turns: dict[str, asyncio.Lock] = {}  # by person
        self._last: dict[str, tuple[str, Object]] = {}  # refresh token used, and the result
        self._silent: dict[str, float] = {}  # since when the issuer has not answered, by person

    def normalize_username(self, username: str) -> str:
        """Returns the name as the API server has it, as lower case could make two persons one."""
        return username

    def validate_username(self, username: str) -> bool:
        """Whether a notebook can be named after the person."""
        try:
            names.slug(username)
        except names.UnfitNameError as error:
            self.log.warning("%s", error)
            return False
        return True

    def user_info_to_username(self, user_info: Object) -> str:
        """Returns the claim by which the API server identifies the person, too; an e-mail address must be verified.

        Raises:
            HTTPError: 403 with the reason.
        """
        claim = self.settings.oidc.username_claim
        person = user_info.get(claim)
        if not isinstance(person, str) or not person:
            raise web.HTTPError(
                403, f"the issuer's token has no {claim}: ask for it in oidc.scopes, or name another claim"
            )
        if claim == "email" and user_info.get("email_verified", True) is not True:
            raise web.HTTPError(
                403, "the issuer says that this address is not proved yet; the API server takes none such"
            )
        return person

    def build_auth_state_dict(self, token_info: Object, user_info: Object) -> Object:
        """Returns the state of a log-in; the person's notebooks may read it, so nothing in it outlives the token."""
        groups = user_info.get(self.settings.oidc.groups_claim) or []
        token = token_info.get("id_token") or ""
        return {
            "id_token": token,
            "expires": tokens.expires(token),
            "groups": [str(one) for one in ([groups] if isinstance(groups, str) else groups)],
            "sealed": self.seal.close(token_info.get("refresh_token") or ""),
        }

    async def update_auth_model(self, auth_model: Object) -> Object:
        """Makes no user an administrator of the hub's pages."""
        return {**auth_model, "admin": False}

    async def check_allowed(self, username: str, auth_model: Object | None) -> bool:
        """Allows members of a team with notebooks. Raises HTTPError: 403 with the reason."""
        if auth_model is None:  # called without a log-in; each request is checked again
            return True
        if not self.teams_of(username, auth_model.get("auth_state")):
            raise web.HTTPError(
                403,
                f"{username} is a member of no team that has notebooks: ask the platform engineer to add you to one",
            )
        return True

    def teams_of(self, person: str, state: Object | None) -> tuple[Team, ...]:
        """Returns the person's teams with notebooks, as of the last log-in or renewal."""
        found: tuple[Team, ...] = self.settings.teams_of(person, (state or {}).get("groups") or [])
        return found

    def unsaid(self, person: str) -> bool:
        """Whether it is unknown if the person has left, as the issuer does not answer; for an hour at most."""
        since = self._silent.get(person)
        return since is not None and time.time() - since < SILENCE_S

    async def refresh_user(self, user: Any, handler: Any = None, **_: Any) -> Any:
        """Renews a token that is about to end. False: the person has to log in again."""
        state = await user.get_auth_state()
        if not state:
            return False
        if not self.teams_of(user.name, state):
            return False
        if state.get("expires", 0) - time.time() > self.settings.renew_before:
            return True
        # A refresh token is valid once, and requests are concurrent: the first renews, the others get its result.
        async with self._turns.setdefault(user.name, asyncio.Lock()):
            used, model = self._last.get(user.name, ("", {}))
            if used and used == state.get("sealed"):
                return model
            renewed = await self._renewed(user, handler, state)
            if isinstance(renewed, dict):
                self._last[user.name] = state["sealed"], renewed
            return renewed

    async def _renewed(self, user: Any, handler: Any, state: Object) -> Any:
        still = state.get("expires", 0) > time.time()
        refresh = self.seal.open(state.get("sealed") or "")
        if not refresh:
            return still
        try:
            told = await self.get_token_info(handler, self.build_refresh_token_request_params(refresh))
            self._silent.pop(user.name, None)
        except HTTPClientError as error:
            if error.code >= 500 or error.code == 429:
                self._silent.setdefault(user.name, time.time())
                self.log.warning("the issuer does not answer, %s keeps the token until it ends: %s", user.name, error)
                return still
            self._silent.pop(user.name, None)
            self.log.info("the issuer renews no token for %s: %s", user.name, error)
            return False
        except web.HTTPError as error:
            self._silent.pop(user.name, None)
            self.log.info("the issuer renews no token for %s: %s", user.name, error)
            return False
        except OSError as error:
            self._silent.setdefault(user.name, time.time())
            self.log.warning("the issuer can't be reached, %s keeps the token until it ends: %s", user.name, error)
            return still
        told.setdefault("refresh_token", refresh)
        if not told.get("id_token"):
            self.log.warning("the issuer renewed no ID token for %s: it has to give one for a refresh token", user.name)
            return still
        model = await self._token_to_auth_model(told)
        if model["name"] != user.name:
            self.log.error("the issuer renewed the token of %s with one of %s", user.name, model["name"])
            return False
        return model if self.teams_of(user.name, model["auth_state"]) else False
