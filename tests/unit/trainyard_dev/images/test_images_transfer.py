"""Images saved, loaded and mirrored by a registry of the test's own: digests stay, what is whole isn't moved again."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard_dev.images import layout, remote, transfer
from trainyard_dev.images.remote import INDEXES, MANIFESTS, Place, Registry

OWN, UPSTREAM = "docker.io/trainyard/demo:1", "nvcr.io/nvidia/plugin:v1"


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


class FakeRegistry:
    """As much of a registry as clients need; `log` holds what it was asked, `token` makes it want one."""

    def __init__(self) -> None:
        self.blobs: dict[tuple[str, str], bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.log: list[str] = []
        self.token = self.login = ""
        self.host = ""

    def add(self, repository: str, tag: str, layers: list[bytes], *, platforms: tuple[str, ...] = ()) -> str:
        """An image, or an index of one for each platform; returns the digest behind the tag."""
        children = []
        for platform in platforms or ("",):
            parts = [json.dumps({"os": platform}).encode(), *layers]
            described = [{"digest": digest_of(part), "size": len(part), "mediaType": "x"} for part in parts]
            self.blobs |= {(repository, digest_of(part)): part for part in parts}
            body = json.dumps({"schemaVersion": 2, "config": described[0], "layers": described[1:]}).encode()
            self.manifests[repository, digest_of(body)] = (MANIFESTS[0], body)
            os, _, cpu = platform.partition("/")
            children.append({"digest": digest_of(body), "size": len(body), "mediaType": MANIFESTS[0],
                             "platform": {"os": os, "architecture": cpu}})  # fmt: skip
        if platforms:
            body = json.dumps({"schemaVersion": 2, "manifests": children}).encode()
            self.manifests[repository, digest_of(body)] = (INDEXES[0], body)
        self.manifests[repository, tag] = (INDEXES[0] if platforms else MANIFESTS[0], body)
        return digest_of(body)


def handler(fake: FakeRegistry) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(code)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def handle_any(self) -> None:
            path, _, query = self.path.partition("?")
            fake.log.append(f"{self.command} {path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if path == "/token":
                fake.login = self.headers.get("Authorization", "")
                return self.answer(200, json.dumps({"token": fake.token}).encode())
            if fake.token and self.headers.get("Authorization") != f"Bearer {fake.token}":
                realm = f'Bearer realm="http://{fake.host}/token",service="s"'
                return self.answer(401, WWW_Authenticate=realm)
            head, _, name = path.removeprefix("/v2/").rpartition("/")
            if head.endswith("/blobs/uploads") or path.endswith("/blobs/uploads/"):
                return self.upload(head.partition("/blobs/")[0], query, body)
            repository, _, kind = head.rpartition("/")
            if kind == "blobs":
                found = fake.blobs.get((repository, name))
                return self.answer(404) if found is None else self.answer(200, found)
            if self.command == "PUT":
                kept = (self.headers["Content-Type"], body)
                fake.manifests[repository, name] = fake.manifests[repository, digest_of(body)] = kept
                return self.answer(201)
            if (repository, name) not in fake.manifests:
                return self.answer(404)
            media, body = fake.manifests[repository, name]
            return self.answer(200, body, Content_Type=media, Docker_Content_Digest=digest_of(body))

        def upload(self, repository: str, query: str, body: bytes) -> None:
            asked = dict(part.partition("=")[::2] for part in query.replace("%3A", ":").replace("%2F", "/").split("&"))
            held = fake.blobs.get((asked.get("from", ""), asked.get("mount", "")))
            if held is not None:
                fake.blobs[repository, asked["mount"]] = held
                return self.answer(201)
            if self.command == "POST":
                return self.answer(202, Location=f"/v2/{repository}/blobs/uploads/session")
            assert digest_of(body) == asked["digest"]
            fake.blobs[repository, asked["digest"]] = body
            return self.answer(201)

        def log_message(self, *_: Any) -> None:
            pass

    for verb in ("GET", "HEAD", "POST", "PUT"):
        setattr(Handler, f"do_{verb}", Handler.handle_any)
    return Handler


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    registry = FakeRegistry()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(registry)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry.host = f"127.0.0.1:{server.server_address[1]}"
        yield registry
        server.shutdown()


def item(fake: FakeRegistry, ref: str) -> transfer.Item:
    place = Place.parse(f"{fake.host}/{ref.partition('/')[2]}")
    return transfer.Item(ref, Registry(fake.host), place)


def filled(fake: FakeRegistry) -> dict[str, str]:
    shared = b"base layer"
    return {
        OWN: fake.add("trainyard/demo", "1", [shared, b"own"]),
        UPSTREAM: fake.add("nvidia/plugin", "v1", [shared], platforms=("linux/amd64", "linux/arm64")),
    }


@pytest.mark.parametrize("name", ["images.tar", "images"])
def test_what_is_saved_and_loaded_has_the_same_digests(fake: FakeRegistry, tmp_path: Path, name: str) -> None:
    digests = filled(fake)
    transfer.save([item(fake, OWN), item(fake, UPSTREAM)], tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    done = transfer.load(tmp_path / name, f"{fake.host}/mirror")
    assert done == {
        f"{fake.host}/mirror/trainyard/demo:1": digests[OWN],
        f"{fake.host}/mirror/nvidia/plugin:v1": digests[UPSTREAM],
    }
    assert ("mirror/nvidia/plugin", digest_of(b"base layer")) in fake.blobs


def test_a_save_goes_on_where_it_was(fake: FakeRegistry, tmp_path: Path) -> None:
    filled(fake)
    lost = fake.blobs.pop(("trainyard/demo", digest_of(b"own")))
    with pytest.raises(TrainyardError, match="has no trainyard/demo/blobs"):
        transfer.save([item(fake, OWN)], tmp_path / "images")
    with pytest.raises(TrainyardError, match=r"index\.json is missing.*finish"):
        layout.read(tmp_path / "images").refs()
    fake.blobs["trainyard/demo", digest_of(b"own")] = lost
    fake.log.clear()
    transfer.save([item(fake, OWN)], tmp_path / "images")
    assert [line for line in fake.log if "blobs" in line] == [f"GET /v2/trainyard/demo/blobs/{digest_of(b'own')}"]


def test_a_broken_blob_is_refused(fake: FakeRegistry, tmp_path: Path) -> None:
    filled(fake)
    fake.blobs["trainyard/demo", digest_of(b"own")] = b"odd"
    with pytest.raises(TrainyardError, match="arrived broken"):
        transfer.save([item(fake, OWN)], tmp_path / "images")


def test_a_mirror_takes_over_blobs_of_its_own_registry(fake: FakeRegistry) -> None:
    digests = filled(fake)
    done = transfer.mirror([item(fake, OWN)], f"{fake.host}/mirror")
    assert done == {f"{fake.host}/mirror/trainyard/demo:1": digests[OWN]}
    assert not [line for line in fake.log if line.startswith("GET") and "blobs" in line]
    fake.log.clear()
    transfer.mirror([item(fake, OWN)], f"{fake.host}/mirror")
    assert not [line for line in fake.log if line.startswith(("PUT", "POST"))]


def test_one_platform_of_several(fake: FakeRegistry) -> None:
    filled(fake)
    done = transfer.mirror([item(fake, UPSTREAM)], f"{fake.host}/one", platform="linux/arm64")
    [digest] = done.values()
    assert fake.manifests["one/nvidia/plugin", "v1"][0] == MANIFESTS[0]
    assert digest in {child["digest"] for child in json.loads(fake.manifests["nvidia/plugin", "v1"][1])["manifests"]}
    with pytest.raises(TrainyardError, match="is not published for linux/s390x"):
        transfer.mirror([item(fake, UPSTREAM)], f"{fake.host}/one", platform="linux/s390x")


def test_a_token_is_fetched_with_the_stored_login(
    fake: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = filled(fake)
    fake.token = "t"
    login = base64.b64encode(b"me:secret").decode()
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {fake.host: {"auth": login}}}))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    done = transfer.mirror([item(fake, OWN)], f"{fake.host}/mirror")
    assert list(done.values()) == [digests[OWN]]
    assert fake.login == f"Basic {login}"


def test_an_image_that_is_not_there(fake: FakeRegistry) -> None:
    with pytest.raises(TrainyardError, match="has no trainyard/demo/manifests/1"):
        transfer.mirror([item(fake, OWN)], f"{fake.host}/mirror")


def test_a_registry_that_is_not_there() -> None:
    place = Place.parse("127.0.0.1:1/a:1")
    with pytest.raises(TrainyardError, match=r"127\.0\.0\.1:1 can't be reached"):
        Registry(place.host).manifest(place)


@pytest.mark.parametrize("prefix", ["https://registry.example.org", "", "/"])
def test_a_prefix_is_no_url(prefix: str) -> None:
    with pytest.raises(UsageError, match="write it without a scheme"):
        transfer.target(prefix, OWN, plain=False)


def test_something_else_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_text("no tar")
    with pytest.raises(TrainyardError, match="this is no archive of `trainyard images save`"):
        transfer.load(tmp_path / "x.tar", "registry.example.org")


@pytest.mark.parametrize("index", ["[]", "{}", '{"manifests": [{"digest": "sha256:0"}]}', "no JSON"])
def test_a_layout_that_names_no_image(tmp_path: Path, index: str) -> None:
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(TrainyardError, match=r"doesn't say by .* which image is which"):
        transfer.load(tmp_path, "registry.example.org")


def test_a_damaged_archive_is_refused(fake: FakeRegistry, tmp_path: Path) -> None:
    digests = filled(fake)
    transfer.save([item(fake, OWN)], tmp_path / "images")
    layout.Folder(tmp_path / "images").path(digests[OWN]).write_text("{}")
    with pytest.raises(TrainyardError, match="is damaged"):
        transfer.load(tmp_path / "images", f"{fake.host}/mirror")


@pytest.mark.parametrize(
    ("ref", "parts"),
    [
        ("docker.io/trainyard/demo:1", ("docker.io", "trainyard/demo", "1")),
        ("localhost:5000/a:1", ("localhost:5000", "a", "1")),
        (f"h.example/a/b@sha256:{'0' * 64}", ("h.example", "a/b", f"sha256:{'0' * 64}")),
    ],
)
def test_references(ref: str, parts: tuple[str, str, str]) -> None:
    place = Place.parse(ref)
    assert (place.host, place.repository, place.reference) == parts
    assert str(place) == ref


@pytest.mark.parametrize("ref", ["demo:1", "docker.io/trainyard/demo"])
def test_a_reference_without_host_or_tag_is_refused(ref: str) -> None:
    with pytest.raises(TrainyardError, match="is no full image reference"):
        Place.parse(ref)


def test_only_this_machines_registries_are_asked_without_tls() -> None:
    assert Registry("localhost:5000").base == "http://localhost:5000"
    assert Registry("registry.example.org").base == "https://registry.example.org"
    assert Registry("registry.example.org", plain=True).base == "http://registry.example.org"
    assert Registry("docker.io").base == f"https://{remote.HUB}"
