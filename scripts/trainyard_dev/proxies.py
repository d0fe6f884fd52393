"""HTTP proxies of this machine, as named by variables: for which connections to use or bypass them."""

import os
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY")
_AROUND = "NO_PROXY"
_HERE = ("localhost", "127.0.0.1", "::1")


def for_builds() -> list[str]:
    """Flags that pass the proxies to the build of an image, by name: a proxy's address may hold a password.

    Both engines support these arguments without a line in the Containerfile, and keep them out of the image.
    """
    names = [name for name in (*_PROXIES, _AROUND) for name in (name, name.lower()) if os.environ.get(name)]
    return [word for name in names for word in ("--build-arg", name)]


def around(hosts: Sequence[str]) -> dict[str, str]:
    """Variables that make `hosts`, too, bypass the proxy; none where no proxy is set."""
    if not any(_value(name) for name in _PROXIES):
        return {}
    kept = [host.strip() for host in _value(_AROUND).split(",") if host.strip()]
    told = ",".join(dict.fromkeys([*kept, *hosts]))
    return {_AROUND: told, _AROUND.lower(): told}


def open_url(request: str | urllib.request.Request, timeout: float) -> Any:
    """Like `urllib.request.urlopen`, but bypasses proxies for servers on this machine."""
    url = request if isinstance(request, str) else request.full_url
    if urllib.parse.urlsplit(url).hostname in _HERE:
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout)
    return urllib.request.urlopen(request, timeout=timeout)


def _value(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower()) or ""
