"""Log-in with a browser on another machine: the user enters a code that this machine shows."""

import sys
import time
from collections.abc import Callable

from trainyard.errors import TrainyardError
from trainyard.login.asking import IssuerClient, RefusedError
from trainyard.login.issuer import Issuer
from trainyard.login.tokens import Tokens, received

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SLOWER_S = 5.0  # additional waiting time after each `slow_down`


def log_in(asker: IssuerClient, issuer: Issuer, client: str, *, sleep: Callable[[float], None] = time.sleep) -> Tokens:
    """Prints an address and a code on standard error, and waits until the user has logged in with them.

    Raises:
        TrainyardError: the issuer has no device log-in, the user refused, or the code expired.
    """
    if not issuer.device:
        hint = "log in on a machine with a browser: `trainyard login` without --device"
        raise TrainyardError("the issuer does not offer device codes", where=issuer.url, hint=hint)
    try:
        begun = asker.post(issuer.device, {"client_id": client, "scope": issuer.asked_scopes})
    except RefusedError as error:
        raise TrainyardError(f"no device code received: {error}", where=issuer.url, hint="check --client-id") from None
    try:
        code, user_code, address = (str(begun[key]) for key in ("device_code", "user_code", "verification_uri"))
    except KeyError as error:
        raise TrainyardError(
            f"the device code lacks {error}", where=issuer.url, hint="log in without --device"
        ) from None
    whole = str(begun.get("verification_uri_complete") or address)
    print(f"open {whole}\nand confirm the code {user_code}", file=sys.stderr, flush=True)
    wait, end = float(begun.get("interval") or 5), time.monotonic() + float(begun.get("expires_in") or 300)
    while time.monotonic() < end:
        sleep(wait)
        try:
            form = {"grant_type": GRANT, "device_code": code, "client_id": client}
            return received(asker.post(issuer.token, form), issuer.url, client)
        except RefusedError as error:
            if error.error == "slow_down":
                wait += SLOWER_S
            elif error.error != "authorization_pending":
                raise TrainyardError(f"the log-in was refused: {error}", where=issuer.url, hint="try again") from None
    raise TrainyardError("nobody logged in before the code expired", where=issuer.url, hint="try again")
