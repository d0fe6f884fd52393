"""Requests without a right signature write and read nothing, whosever access key they name.

Each attempt names the access key of somebody else and knows no secret. Those marked in `SUCCEEDED` were carried out by
the server as upstream left it (CVE-2026-40344, CVE-2026-41145, CVE-2026-97731); charts/minio/tools/minio/patches shut
them.
"""

import io
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import wire

from trainyard_agent.store import connect
from trainyard_agent.store.connect import Access

Attempt = Callable[[Access, str], wire.Answer]
BODY = b"forged"
TARGET = "/raw-data/forged"
MADE_UP = "0" * 64


def credential(user: str) -> dict[str, str]:
    return {"X-Amz-Credential": f"{user}/{wire.scope(wire.now())}"}


def link(user: str) -> dict[str, str]:
    """All that a presigned link has, with a signature that nobody made."""
    return {
        "X-Amz-Algorithm": wire.ALGORITHM, **credential(user), "X-Amz-Date": wire.now(), "X-Amz-Expires": "600",
        "X-Amz-SignedHeaders": "host", "X-Amz-Signature": MADE_UP,
    }  # fmt: skip


def bearer(user: str, payload: str) -> dict[str, str]:
    """Headers with a signature that nobody made."""
    time = wire.now()
    return {
        "x-amz-content-sha256": payload,
        "x-amz-date": time,
        "authorization": wire.authorization(user, MADE_UP, "host;x-amz-content-sha256;x-amz-date", time),
    }


def trailer(body: bytes = BODY) -> dict[str, Any]:
    """A body in unsigned chunks, and the header that says how long it is."""
    return {"headers": {"x-amz-decoded-content-length": str(len(body))}, "body": wire.chunked(body)}


def put(
    payload: str, query: Callable[[str], dict[str, str]] | None = None, *,
    bare: bool = True, unpack: bool = False, **more: str,
) -> Attempt:  # fmt: skip
    """An object in unsigned chunks, or an archive to `unpack`; not `bare`: with headers that nobody signed."""

    def act(to: Access, user: str) -> wire.Answer:
        head = {"x-amz-content-sha256": payload, "x-amz-date": wire.now()} if bare else bearer(user, payload)
        path, sent = TARGET, trailer()
        if unpack:
            path, sent["headers"] = "/raw-data/a.tar", {"x-amz-meta-snowball-auto-extract": "true"}
            sent["body"] = wire.archive({"forged": BODY})
        head |= sent["headers"] | more
        return wire.send(to, "PUT", path, query=query and query(user), headers=head, body=sent["body"])

    return act


extract = partial(put, unpack=True)
SIGNED, SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
SUCCEEDED: dict[str, Attempt] = {
    "unsigned chunks, the key in the query": put(wire.UNSIGNED_TRAILER, credential),
    "unsigned chunks, a whole link with a made-up signature": put(wire.UNSIGNED_TRAILER, link),
    "archive to unpack, the key in the query": extract(wire.UNSIGNED_TRAILER, credential),
    "archive to unpack, a whole link with a made-up signature": extract(wire.UNSIGNED_TRAILER, link),
    "archive to unpack, a made-up signature": extract(wire.UNSIGNED_TRAILER, bare=False),
}
REFUSED_BEFORE: dict[str, Attempt] = {
    "unsigned chunks, a made-up signature": put(wire.UNSIGNED_TRAILER, bare=False),
    "unsigned chunks, nobody's": put(wire.UNSIGNED_TRAILER),
    "unsigned chunks, the key in an old query": put(
        wire.UNSIGNED_TRAILER, lambda user: {"AWSAccessKeyId": user, "Signature": "x", "Expires": "9999999999"}
    ),
    "unsigned chunks, a bearer token": put(wire.UNSIGNED_TRAILER, credential, authorization="Bearer x"),
    "unsigned chunks, an unknown scheme": put(wire.UNSIGNED_TRAILER, credential, authorization="x"),
    "signed chunks, the key in the query": put(SIGNED, credential),
    "signed chunks and trailer, the key in the query": put(SIGNED_TRAILER, credential),
    "signed chunks, a made-up signature": put(SIGNED, bare=False),
    "signed chunks and trailer, a made-up signature": put(SIGNED_TRAILER, bare=False),
    "a link with a made-up signature": put("UNSIGNED-PAYLOAD", link),
    "a made-up signature": put("UNSIGNED-PAYLOAD", bare=False),
    "archive to unpack, signed chunks, the key in the query": extract(SIGNED, credential),
    "archive to unpack, signed chunks and trailer": extract(SIGNED_TRAILER, credential),
    "archive to unpack, a link with a made-up signature": extract("UNSIGNED-PAYLOAD", link),
    "archive to unpack, nobody's": extract(wire.UNSIGNED_TRAILER),
}


REFUSALS = {"AccessDenied", "InvalidArgument", "InvalidRequest", "SignatureDoesNotMatch"}


@pytest.fixture(scope="module")
def target(launch: Callable[..., Any]) -> Any:
    """A server with one bucket and one user who may write all of it."""
    server = launch()
    server.admin.make_bucket("raw-data")
    admin = connect.admin(server.root)
    admin.user_add("victim", "secret-of-victim-0123")
    admin.policy_set("readwrite", user="victim")
    return server


def written(server: Any) -> list[str]:
    """What lies in the bucket; it is empty again afterwards."""
    found = [entry.object_name for entry in server.admin.list_objects("raw-data", recursive=True)]
    for name in found:
        server.admin.remove_object("raw-data", name)
    return found


@pytest.mark.parametrize("user", ["victim", "root"])
@pytest.mark.parametrize("attempt", [*SUCCEEDED, *REFUSED_BEFORE])
def test_request_without_a_right_signature_writes_nothing(target: Any, attempt: str, user: str) -> None:
    answer = (SUCCEEDED | REFUSED_BEFORE)[attempt](target.root, target.root.user if user == "root" else "victim")
    assert (answer.status // 100, written(target)) == (4, []), answer
    assert answer.code in REFUSALS, answer


def test_part_of_an_upload_without_a_right_signature_is_refused(target: Any) -> None:
    upload = target.admin._create_multipart_upload("raw-data", "parts", {})
    query = {"uploadId": upload, "partNumber": "1", **credential("victim")}
    sent = trailer()
    head = {"x-amz-content-sha256": wire.UNSIGNED_TRAILER, "x-amz-date": wire.now(), **sent["headers"]}
    answer = wire.send(target.root, "PUT", "/raw-data/parts", query=query, headers=head, body=sent["body"])
    assert (answer.status, answer.code) == (400, "InvalidRequest"), answer
    assert not target.admin._list_parts("raw-data", "parts", upload).parts
    target.admin._abort_multipart_upload("raw-data", "parts", upload)


def own(target: Any) -> Access:
    """The victim's access: what follows is signed with its secret."""
    return Access(target.root.endpoint, "victim", "secret-of-victim-0123", "us-east-1")


def test_unsigned_chunks_with_a_right_signature_are_taken(target: Any) -> None:
    sent = trailer()
    head = wire.signed_headers(own(target), "PUT", TARGET, wire.UNSIGNED_TRAILER, extra=sent["headers"])
    assert wire.send(target.root, "PUT", TARGET, headers=head, body=sent["body"]).status == 200
    assert target.admin.get_object("raw-data", "forged").read() == BODY
    assert written(target) == ["forged"]


def test_archive_in_unsigned_chunks_with_a_right_signature_is_unpacked(target: Any) -> None:
    body = wire.archive({"a": b"1", "b/c": b"2"})
    extra = {"x-amz-meta-snowball-auto-extract": "true", "x-amz-decoded-content-length": str(len(body))}
    head = wire.signed_headers(own(target), "PUT", "/raw-data/a.tar", wire.UNSIGNED_TRAILER, extra=extra)
    assert wire.send(target.root, "PUT", "/raw-data/a.tar", headers=head, body=wire.chunked(body)).status == 200
    assert sorted(written(target)) == ["a", "b/c"]


def test_signed_request_is_not_taken_for_ever(target: Any) -> None:
    sent, yesterday = trailer(), wire.now(timedelta(days=1))
    head = wire.signed_headers(own(target), "PUT", TARGET, wire.UNSIGNED_TRAILER, extra=sent["headers"], time=yesterday)
    answer = wire.send(target.root, "PUT", TARGET, headers=head, body=sent["body"])
    assert (answer.status, answer.code, written(target)) == (403, "RequestTimeTooSkewed", []), answer


def test_one_cannot_sign_for_oneself_and_act_for_another(target: Any) -> None:
    query = credential(target.root.user)
    for payload, sent in (("UNSIGNED-PAYLOAD", {"headers": {}, "body": BODY}), (wire.UNSIGNED_TRAILER, trailer())):
        head = wire.signed_headers(own(target), "PUT", TARGET, payload, query=query, extra=sent["headers"])
        answer = wire.send(target.root, "PUT", TARGET, query=query, headers=head, body=sent["body"])
        assert (answer.status, answer.code, written(target)) == (400, "InvalidRequest", []), answer


UNSIGNED_HEADERS = {
    "copy another object": {"x-amz-copy-source": "/raw-data/secret"},
    "copy another object, encoded": {"x-amz-copy-source": "raw-data%2Fsecret"},
    "unpack an archive": {"x-amz-meta-snowball-auto-extract": "true"},
    "write tags": {"x-amz-tagging": "a=b"},
    "pretend to be a replica": {"x-minio-source-mtime": "2020-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("attempt", UNSIGNED_HEADERS)
def test_link_does_only_what_its_maker_signed(target: Any, attempt: str) -> None:
    target.admin.put_object("raw-data", "secret", io.BytesIO(b"secret"), 6)
    query = wire.presigned(own(target), "PUT", "/raw-data/drop")
    answer = wire.send(
        target.root,
        "PUT",
        "/raw-data/drop",
        query=query,
        headers=UNSIGNED_HEADERS[attempt],
        body=wire.archive({"x": BODY}),
    )
    assert (answer.status // 100, written(target)) == (4, ["secret"]), answer


def test_link_still_writes_its_object(target: Any) -> None:
    query = wire.presigned(own(target), "PUT", "/raw-data/drop")
    assert wire.send(target.root, "PUT", "/raw-data/drop", query=query, body=BODY).status == 200
    assert written(target) == ["drop"]


def test_form_with_a_made_up_signature_writes_nothing(target: Any) -> None:
    fields = {
        "key": "forged",
        "policy": "e30=",
        "bucket": "raw-data",
        **{k.lower(): v for k, v in link("victim").items()},
    }
    parts = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    body = f'{parts}--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nforged\r\n--b--\r\n'
    head = {"content-type": "multipart/form-data; boundary=b"}
    answer = wire.send(target.root, "POST", "/raw-data", headers=head, body=body.encode())
    assert (answer.status // 100, written(target)) == (4, []), answer


def test_archive_reaches_no_folder_that_its_maker_may_not(target: Any) -> None:
    admin = connect.admin(target.root)
    allowed = {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": ["arn:aws:s3:::raw-data/mine/*"]}
    admin.policy_add("mine", policy={"Version": "2012-10-17", "Statement": [allowed]})
    admin.user_add("narrow", "secret-of-narrow-0123")
    admin.policy_set("mine", user="narrow")
    narrow = Access(target.root.endpoint, "narrow", "secret-of-narrow-0123", "us-east-1")
    for name in ("../theirs/x", "mine/../../theirs/x", "/theirs/x"):
        body = wire.archive({name: BODY})
        extra = {"x-amz-meta-snowball-auto-extract": "true", "x-amz-meta-minio-snowball-prefix": "mine"}
        head = wire.signed_headers(narrow, "PUT", "/raw-data/a.tar", "UNSIGNED-PAYLOAD", extra=extra)
        wire.send(target.root, "PUT", "/raw-data/a.tar", headers=head, body=body)
        assert [found for found in written(target) if not found.startswith("mine/")] == [], name
