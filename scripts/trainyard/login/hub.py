"""The member's own token inside a notebook: the hub stores and renews it, and passes it to the notebook's server."""

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping

from trainyard.errors import TrainyardError
from trainyard.login.tokens import Tokens, claims

TIMEOUT_S = 20.0
MOST = 1 << 20
NAMES = ("JUPYTERHUB_API_URL", "JUPYTERHUB_API_TOKEN", "JUPYTERHUB_USER")


def address(environment: Mapping[str, str]) -> str:
    """The hub's API address for this notebook's user. The name is fully quoted: it may contain `/` or `..`.

    Raises:
        TrainyardError: this is not a notebook of the hub.
    """
    missing = [name for name in NAMES if not environment.get(name)]
    if missing:
        raise TrainyardError(f"{' and '.join(missing)} not set: not a notebook of the hub", hint="log in without --hub")
    name = environment["JUPYTERHUB_USER"]
    if name in (".", ".."):  # quoting keeps dots, and a server would go up a level
        raise TrainyardError(f"invalid name of a hub user: {name}", hint="choose another user name at the hub")
    return f"{environment['JUPYTERHUB_API_URL'].rstrip('/')}/users/{urllib.parse.quote(name, safe='')}"


def tokens(environment: Mapping[str, str] = os.environ) -> Tokens:
    """The token that the hub has for this notebook's user.

    Raises:
        TrainyardError: the hub can't be reached, or has no token or only an expired one.
    """
    url = address(environment)
    request = urllib.request.Request(url, headers={"Authorization": f"token {environment['JUPYTERHUB_API_TOKEN']}"})
    # Ignore the environment's proxy: the hub is in the cluster, and its token must not go elsewhere.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            said = json.loads(answer.read(MOST))
    except urllib.error.HTTPError as error:
        hint = "stop the notebook at the hub and start it again"
        raise TrainyardError(f"the hub answered {error.code} {error.reason}", where=url, hint=hint) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise TrainyardError(f"the hub can't be reached: {reason}", where=url, hint="try again") from None
    except ValueError:
        raise TrainyardError("the hub's answer is not JSON", where=url, hint="try again") from None
    state = said.get("auth_state") if isinstance(said, dict) else None
    token = state.get("id_token") if isinstance(state, dict) else None
    if not isinstance(token, str):
        hint = "log out of the hub and in again; the hub must keep auth_state, and the notebook's token needs its scope"
        raise TrainyardError("the hub has no token for you", where=url, hint=hint)
    claims(token)
    return Tokens(token)
