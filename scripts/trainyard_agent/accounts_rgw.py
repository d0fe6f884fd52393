"""Users of Ceph's object gateway, through its admin API and, for their policies, its IAM API.

A user there has any number of keys: an owner is a user. The key that asks is one of a user with the capabilities
`users=*` and `user-policy=*`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from trainyard_agent import store
from trainyard_agent.accounts import Key, is_owner
from trainyard_agent.say import PlatformError
from trainyard_agent.store import Access

FORM = "application/x-www-form-urlencoded"


class RgwError(Exception):
    """What the gateway refused, in its own word."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{code} ({status})")
        self.status, self.code = status, code


def _code(text: bytes) -> str:
    """The error code of an answer, JSON or XML."""
    try:
        return str(json.loads(text).get("Code", "?"))
    except (ValueError, AttributeError):
        return text.decode("utf-8", "replace").partition("<Code>")[2].partition("</Code>")[0] or "?"


class RgwAccounts:
    """The calls of `Accounts`."""

    def __init__(self, admin: Access) -> None:
        self.admin, self._pool = admin, store.pool(admin)

    def _call(self, method: str, path: str, query: dict[str, str], form: dict[str, str] | None = None) -> Any:
        """One signed request; the decoded answer, None where it isn't JSON. Raises RgwError."""
        from minio.credentials import Credentials
        from minio.signer import sign_v4_s3

        body = urlencode(form).encode() if form else b""
        text = "&".join(f"{quote(name, '')}={quote(value, '')}" for name, value in sorted(query.items()))
        url = SplitResult(*urlsplit(self.admin.endpoint)[:2], path, text, "")
        now, digest = datetime.now(UTC), hashlib.sha256(body).hexdigest()
        headers: dict[str, str | list[str] | tuple[str]] = {
            "Host": url.netloc,
            "X-Amz-Date": now.strftime("%Y%m%dT%H%M%SZ"),
            "x-amz-content-sha256": digest,
        }
        if form:
            headers["Content-Type"] = FORM
        keys = Credentials(self.admin.user, self.admin.password)
        signed = sign_v4_s3(method, url, self.admin.region or "us-east-1", headers, keys, digest, now)
        answer = self._pool.request(
            method, url.geturl(), body=body, headers={name: str(value) for name, value in signed.items()}
        )
        if answer.status >= 400:
            raise RgwError(answer.status, _code(answer.data))
        try:
            return json.loads(answer.data)
        except ValueError:
            return None

    def _keys(self, owner: str) -> dict[str, str] | None:
        """Access and secret keys of an owner; None where there is no such user."""
        try:
            found = self._call("GET", "/admin/user", {"uid": owner, "format": "json"})
        except RgwError as error:
            if error.code == "NoSuchUser":
                return None
            raise
        return {str(key["access_key"]): str(key["secret_key"]) for key in found["keys"]}

    def held(self) -> Mapping[str, frozenset[str]]:
        """The owners that are ours, each with its access keys."""
        names: list[str] = []
        marker = ""
        while True:
            page = self._call(
                "GET", "/admin/user", {"list": "", "max-entries": "1000", "marker": marker, "format": "json"}
            )
            names += page["keys"]
            marker = page.get("marker") or ""
            if not page.get("truncated") or not marker:
                break
        return {owner: frozenset(self._keys(owner) or {}) for owner in names if is_owner(owner)}

    def give(self, owner: str, key: Key, policy: dict[str, Any]) -> None:
        """Make or correct a user, one of its keys and its policy. It makes no buckets of its own."""
        present = self._keys(owner)
        pair = {"access-key": key.access, "secret-key": key.secret, "generate-key": "false", "format": "json"}
        try:
            if present is None:
                self._call("PUT", "/admin/user", {"uid": owner, "display-name": owner, "max-buckets": "-1", **pair})
            elif present.get(key.access) != key.secret:
                self._call("PUT", "/admin/user", {"key": "", "uid": owner, "key-type": "s3", **pair})
        except RgwError as error:
            if error.code != "KeyExists":
                raise
            raise PlatformError(
                f"access key {key.access} of {owner} is another user's: delete its Secret and upgrade again"
            ) from error
        asked = {"Action": "PutUserPolicy", "UserName": owner, "PolicyName": owner}
        self._call("POST", "/", {}, asked | {"PolicyDocument": json.dumps(policy)})

    def take(self, owner: str, access: str) -> None:
        """Remove one key of a user."""
        if access in (self._keys(owner) or {}):
            self._call("DELETE", "/admin/user", {"key": "", "uid": owner, "access-key": access, "format": "json"})

    def drop(self, owner: str) -> None:
        """Remove a user with its keys and its policy. It owns no bucket, so no data goes."""
        if self._keys(owner) is not None:
            self._call("DELETE", "/admin/user", {"uid": owner, "format": "json"})
