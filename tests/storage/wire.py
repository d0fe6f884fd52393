"""Requests to an object store as an attacker puts them together by hand, which no client library would send."""

import hashlib
import hmac
import http.client
import io
import ssl
import tarfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import quote, urlencode, urlparse

from trainyard_agent.store.connect import Access

UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Answer:
    """What the store said. `code` is S3's word for it, "" for a success."""

    status: int
    body: str

    @property
    def code(self) -> str:
        return self.body.partition("<Code>")[2].partition("</Code>")[0]


def send(
    to: Access,
    method: str,
    path: str,
    *,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> Answer:
    """One request, as it is: nothing is signed or added but its length."""
    url = urlparse(to.endpoint)
    if to.secure:
        context = ssl.create_default_context(cadata=to.ca)
        link: http.client.HTTPConnection = http.client.HTTPSConnection(url.netloc, timeout=20, context=context)
    else:
        link = http.client.HTTPConnection(url.netloc, timeout=20)
    try:
        target = quote(path) + ("?" + urlencode(query) if query else "")
        link.request(method, target, body=body, headers={"Content-Length": str(len(body)), **(headers or {})})
        answer = link.getresponse()
        return Answer(answer.status, answer.read().decode("utf-8", "replace"))
    finally:
        link.close()


def now(back: timedelta = timedelta()) -> str:
    """A request's time, as S3 writes it."""
    return (datetime.now(UTC) - back).strftime("%Y%m%dT%H%M%SZ")


def scope(time: str, service: str = "s3", region: str = "us-east-1") -> str:
    return f"{time[:8]}/{region}/{service}/aws4_request"


def signature(secret: str, method: str, path: str, query: dict[str, str], signed: dict[str, str], payload: str,
              time: str, service: str = "s3") -> str:  # fmt: skip
    """Signature version 4 over what is named in `signed`."""
    canonical = "\n".join((
        method, quote(path), urlencode(sorted(query.items()), quote_via=quote),
        "".join(f"{name}:{signed[name]}\n" for name in sorted(signed)), ";".join(sorted(signed)), payload,
    ))  # fmt: skip
    words = "\n".join((ALGORITHM, time, scope(time, service), hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in scope(time, service).split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, words.encode(), hashlib.sha256).hexdigest()


def authorization(user: str, made: str, signed: str, time: str, service: str = "s3") -> str:
    return f"{ALGORITHM} Credential={user}/{scope(time, service)}, SignedHeaders={signed}, Signature={made}"


def signed_headers(
    to: Access,
    method: str,
    path: str,
    payload: str,
    *,
    query: dict[str, str] | None = None,
    extra: dict[str, str] | None = None,
    time: str = "",
    service: str = "s3",
) -> dict[str, str]:
    """Headers of a rightly signed request of `to`'s user; `extra` is signed with it."""
    time = time or now()
    signed = {"host": to.host, "x-amz-content-sha256": payload, "x-amz-date": time, **(extra or {})}
    made = signature(to.password, method, path, query or {}, signed, payload, time, service)
    bearer = authorization(to.user, made, ";".join(sorted(signed)), time, service)
    return {**{name: value for name, value in signed.items() if name != "host"}, "authorization": bearer}


def presigned(to: Access, method: str, path: str, *, seconds: int = 600) -> dict[str, str]:
    """The query of a link that `to`'s user gives away."""
    time = now()
    query = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{to.user}/{scope(time)}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    made = signature(to.password, method, path, query, {"host": to.host}, "UNSIGNED-PAYLOAD", time)
    return {**query, "X-Amz-Signature": made}


def chunked(content: bytes) -> bytes:
    """A body in chunks without signatures, and without a trailer."""
    return b"%x\r\n%s\r\n0\r\n\r\n\r\n" % (len(content), content)


def archive(names: dict[str, bytes], mode: Literal["w", "w:gz"] = "w") -> bytes:
    """A tar archive of these files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:
        for name, content in names.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def digest(body: bytes) -> str:
    """What a signature covers of a body, and what an object is checked by."""
    return hashlib.sha256(body).hexdigest()
