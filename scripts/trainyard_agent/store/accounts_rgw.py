"""Users of Ceph's object gateway, through its admin API and, for their policies, its IAM API.

A user there may have several keys, but loses its policies whenever one is added or removed (seen with 16.2.15). So each
key has its own user, `<owner>.<access key>`, as in MinIO. The administrator's key belongs to a user with the
capabilities `users=*` and `user-policy=*`.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect
from trainyard_agent.store.accounts_keys import Key, is_owner
from trainyard_agent.store.connect import Access

FORM = "application/x-www-form-urlencoded"


class RgwError(Exception):
    """The gateway refused a request; the text is its error code."""

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
    """Implementation of `Accounts` for Ceph's object gateway."""

    def __init__(self, admin: Access) -> None:
        self.admin, self._pool = admin, connect.pool(admin)

    def _call(self, method: str, path: str, query: dict[str, str], form: dict[str, str] | None = None) -> Any:
        """Send one signed request; returns the decoded answer, None if it isn't JSON. Raises RgwError."""
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
        signed = sign_v4_s3(
            method=method,
            url=url,
            region=self.admin.region or "us-east-1",
            headers=headers,
            credentials=keys,
            content_sha256=digest,
            date=now,
        )
        answer = self._pool.request(
            method, url.geturl(), body=body, headers={name: str(value) for name, value in signed.items()}
        )
        if answer.status >= 400:
            raise RgwError(answer.status, _code(answer.data))
        try:
            return json.loads(answer.data)
        except ValueError:
            return None

    def _secret(self, user: str, access: str) -> str | None:
        """The secret of a user's key, "" if the user has no such key; None if there is no such user."""
        try:
            found = self._call("GET", "/admin/user", {"uid": user, "format": "json"})
        except RgwError as error:
            if error.code == "NoSuchUser":
                return None
            raise
        return next((str(key["secret_key"]) for key in found["keys"] if key["access_key"] == access), "")

    def held(self) -> Mapping[str, frozenset[str]]:
        """The platform's owners, each with its access keys."""
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
        found: dict[str, set[str]] = defaultdict(set)
        for name in names:
            owner, _, access = name.partition(".")
            if is_owner(owner):
                found[owner].add(access)
        return {owner: frozenset(keys) for owner, keys in found.items()}

    def give(self, owner: str, key: Key, policy: dict[str, Any]) -> None:
        """Create or correct the user of a key and its policy. The user can't create buckets."""
        user = f"{owner}.{key.access}"
        present = self._secret(user, key.access)
        pair = {"access-key": key.access, "secret-key": key.secret, "generate-key": "false", "format": "json"}
        try:
            if present is None:
                self._call("PUT", "/admin/user", {"uid": user, "display-name": owner, "max-buckets": "-1", **pair})
            elif present != key.secret:
                self._call("PUT", "/admin/user", {"key": "", "uid": user, "key-type": "s3", **pair})
        except RgwError as error:
            if error.code != "KeyExists":
                raise
            raise PlatformError(
                f"access key {key.access} of {owner} is another user's: delete its Secret and upgrade again"
            ) from error
        for access in self.held().get(owner, frozenset()) | {key.access}:
            asked = {"Action": "PutUserPolicy", "UserName": f"{owner}.{access}", "PolicyName": owner}
            self._call("POST", "/", {}, asked | {"PolicyDocument": json.dumps(policy)})

    def take(self, owner: str, access: str) -> None:
        """Remove the user of a key. It owns no bucket, so no data are lost."""
        try:
            self._call("DELETE", "/admin/user", {"uid": f"{owner}.{access}", "format": "json"})
        except RgwError as error:
            if error.code != "NoSuchUser":
                raise

    def drop(self, owner: str) -> None:
        """Remove all users of an owner."""
        for access in self.held().get(owner, frozenset()):
            self.take(owner, access)
