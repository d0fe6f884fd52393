"""Images saved, loaded and mirrored by crane, at a registry that it serves: digests stay, complete ones are skipped."""

import base64
import functools
import http.server
import json
import os
import re
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard.shell import run
from trainyard_dev.images import crane
from trainyard_dev.tools.build import binary

OWN, UPSTREAM = "site.invalid/trainyard/demo:1", "nvcr.io/nvidia/plugin:v1"
PLATFORMS = ("linux/amd64", "linux/arm64")


@dataclass
class Served:
    """A registry with an image of ours and one for two platforms."""

    host: str
    disk: Path
    log: Path
    digests: dict[str, str]

    def item(self, ref: str) -> crane.Item:
        return crane.Item(ref, crane.under(self.host, ref))

    def asked(self, pattern: str) -> list[str]:
        """Requests that match, since the log was cleared."""
        return re.findall(pattern, self.log.read_text())

    def blob(self, ref: str) -> Path:
        """The file of an image's last layer."""
        manifest = json.loads(run([binary("crane"), "manifest", crane.under(self.host, ref)]).stdout)
        return self.disk.joinpath(*manifest["layers"][-1]["digest"].split(":"))


@contextmanager
def serving(folder: Path, *program: str | Path) -> Iterator[Served]:
    """An empty registry."""
    log = folder / "log"
    argv = program or (binary("crane"), "registry", "serve", "--address", "127.0.0.1:0", "--disk", folder)
    with log.open("w") as file, subprocess.Popen(argv, stdout=file, stderr=file) as server:
        while not (port := re.search(r"(?:serving on port |listening on 127.0.0.1:)(\d+)\D", log.read_text())):
            assert server.poll() is None
        try:
            yield Served(f"127.0.0.1:{port[1]}", folder, log, {})
        finally:
            server.terminate()


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, program = tmp_path_factory.mktemp("registry"), binary("crane")
    with serving(folder) as made:
        host = made.host
        own, several = (crane.under(host, ref) for ref in (OWN, UPSTREAM))
        for ref, text in ((own, "own"), (f"{host}/nvidia/plugin:base", "upstream's")):
            (folder / "file").write_text(text)
            with tarfile.open(folder / "layer.tar", "w") as tar:
                tar.add(folder / "file", "file")
            run([program, "append", "--oci-empty-base", "-f", folder / "layer.tar", "-t", ref])
        each = [f"{host}/nvidia/plugin:{platform[6:]}" for platform in PLATFORMS]
        for ref, platform in zip(each, PLATFORMS, strict=True):
            run([program, "mutate", f"{host}/nvidia/plugin:base", "--set-platform", platform, "-t", ref])
        run([program, "index", "append", *(word for ref in each for word in ("-m", ref)), "-t", several])
        made.digests.update({OWN: crane.digest(own), UPSTREAM: crane.digest(several)})
        made.log.write_text("")
        yield made


@pytest.mark.parametrize("name", ["images.tar", "images"])
def test_what_is_saved_and_loaded_has_the_same_digests(served: Served, tmp_path: Path, name: str) -> None:
    crane.save([served.item(OWN), served.item(UPSTREAM)], tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    done = crane.load(tmp_path / name, f"{served.host}/mirror")
    assert done == {crane.under(f"{served.host}/mirror", ref): digest for ref, digest in served.digests.items()}
    for platform in PLATFORMS:
        at = f"{served.host}/mirror/nvidia/plugin:v1"
        assert run([binary("crane"), "--platform", platform, "export", at, "-"]).stdout.count("upstream's") == 1


def test_a_save_goes_on_where_it_was(served: Served, tmp_path: Path) -> None:
    lost = served.blob(OWN)
    kept = lost.rename(tmp_path / "lost")
    with pytest.raises(TrainyardError, match=f"has no trainyard/demo/blobs/sha256:{lost.name}"):
        crane.save([served.item(UPSTREAM), served.item(OWN)], tmp_path / "images")
    with pytest.raises(TrainyardError, match=r"index\.json is missing or empty.*finish"):
        crane.load(tmp_path / "images", served.host)
    kept.rename(lost)
    blobs = tmp_path / "images/blobs/sha256"
    crane.save([served.item(UPSTREAM)], tmp_path / "images")
    layer = blobs / served.blob("nvcr.io/nvidia/plugin:base").name
    before = layer.stat().st_mtime_ns
    (blobs / lost.name).write_bytes(lost.read_bytes()[:9])  # where the line was cut
    crane.save([served.item(UPSTREAM), served.item(OWN)], tmp_path / "images")
    assert layer.stat().st_mtime_ns == before
    assert len(crane.load(tmp_path / "images", f"{served.host}/mirror")) == 2


def test_a_broken_blob_is_refused(tmp_path: Path) -> None:
    """The registry is a folder, whose one blob is not what its name says."""
    media = "application/vnd.oci.image.manifest.v1+json"
    handler = type(
        "Folder", (http.server.SimpleHTTPRequestHandler,), {"extensions_map": {"": media}, "log_message": print}
    )
    config = {"digest": f"sha256:{'0' * 64}", "size": 2, "mediaType": "application/vnd.oci.image.config.v1+json"}
    for name, text in (
        ("manifests/1", json.dumps({"config": config, "layers": []})),
        (f"blobs/{config['digest']}", "{}"),
    ):
        path = tmp_path / "v2/demo" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(TrainyardError, match=r"a blob is corrupt.* complete files are kept"):
            crane.save([crane.Item(OWN, f"127.0.0.1:{server.server_address[1]}/demo:1")], tmp_path / "images")
        server.shutdown()


def test_a_mirror_takes_over_blobs_of_its_own_registry(served: Served) -> None:
    done = crane.mirror([served.item(OWN)], f"{served.host}/mirror")
    assert done == {f"{served.host}/mirror/trainyard/demo:1": served.digests[OWN]}
    assert not served.asked(r"GET \S+/blobs/\S+")
    served.log.write_text("")
    crane.mirror([served.item(OWN)], f"{served.host}/mirror")
    assert not served.asked(r"(?:PUT|POST) .*")


def test_an_interrupted_mirror_goes_on_where_it_was(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sizes are printed before anything is copied; then only what the target lacks is sent."""
    small, large, pair = "nvcr.io/nvidia/plugin:amd64", "nvcr.io/nvidia/plugin:large", UPSTREAM
    (tmp_path / "layer").write_bytes(os.urandom(3_000_000))
    with tarfile.open(tmp_path / "layer.tar", "w") as tar:
        tar.add(tmp_path / "layer", "layer")
    added = ("-b", served.item(small).at, "-f", tmp_path / "layer.tar", "-t", served.item(large).at)
    run([binary("crane"), "append", *added])
    layer, items = served.blob(large), [served.item(ref) for ref in (small, large, pair)]
    with serving(tmp_path) as target:
        kept = layer.rename(tmp_path / "kept")
        with pytest.raises(TrainyardError, match=f"has no nvidia/plugin/blobs/sha256:{layer.name}"):
            crane.mirror(items, target.host)
        listed = rf" +3\.0 MB  {target.host}/nvidia/plugin:large\n(.*\n)*3 images, 3\.0 MB; to copy: 3 images, 3\.0 MB"
        assert re.search(rf"{listed}(.*\n)+  \[1/3\] ", capsys.readouterr().out)
        kept.rename(layer)
        target.log.write_text("")
        crane.mirror(items, target.host)
        assert f"{target.host}/nvidia/plugin:amd64  there already\n" in (said := capsys.readouterr().out)
        assert "3 images, 3.0 MB; to copy: 2 images, 3.0 MB\n" in said and "[2/2]" in said
        sent = "".join(target.asked(r"PUT \S+/blobs/\S+"))
        assert layer.name in sent and served.blob(small).name not in sent
        target.log.write_text("")
        crane.mirror(items, target.host)
        assert "to copy: 0 images, 0.0 MB" in capsys.readouterr().out and not target.asked(r"(?:PUT|POST) .*")


def test_one_platform_of_several(served: Served) -> None:
    done = crane.mirror([served.item(UPSTREAM)], f"{served.host}/one", platform="linux/arm64")
    assert list(done.values()) == [crane.digest(f"{served.host}/nvidia/plugin:arm64")]
    assert crane.mirror([served.item(OWN)], f"{served.host}/one", platform="linux/arm64")
    with pytest.raises(TrainyardError, match=r"nvidia/plugin:v1 is not published for linux/s390x"):
        crane.mirror([served.item(UPSTREAM)], f"{served.host}/one", platform="linux/s390x")


class Locked(http.server.BaseHTTPRequestHandler):
    """A registry that wants a token, which it gives for a login; it holds one digest under any tag."""

    def do_HEAD(self) -> None:
        given = self.headers.get("Authorization", "")
        if self.path.startswith("/token"):
            body = json.dumps({"token": given.removeprefix("Basic ") or "nobody's"}).encode()
            return self.answer(200, body)
        if given != f"Bearer {base64.b64encode(b'me:secret').decode()}":
            realm = f'Bearer realm="http://{self.headers["Host"]}/token",service="s"'
            return self.answer(401, b"", WWW_Authenticate=realm)
        media = "application/vnd.oci.image.index.v1+json"
        return self.answer(200, b"{}", Content_Type=media, Docker_Content_Digest=f"sha256:{'0' * 64}")

    do_GET = do_HEAD  # noqa: N815

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in ({"Content_Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("by", ["docker", "podman"])
def test_a_token_is_fetched_with_the_stored_login(tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Podman's log-in is used even if docker's file has others."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        host = f"127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
        login = {host: {"auth": base64.b64encode(b"me:secret").decode()}}
        (tmp_path / "config.json").write_text(json.dumps({"auths": login if by == "docker" else {}}))
        with pytest.raises(TrainyardError, match=f"log in to it with `docker login {host}` or `podman login"):
            monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
            crane.digest(f"{host}/a:1")
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        if by == "podman":
            (tmp_path / "containers").mkdir()
            (tmp_path / "containers/auth.json").write_text(json.dumps({"auths": login}))
        assert crane.digest(f"{host}/a:1") == f"sha256:{'0' * 64}"
        server.shutdown()


def test_plain_http_is_spoken_here_and_where_it_is_asked_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that is set leads to a registry of another name, and is not asked for this machine's own."""
    monkeypatch.setenv("http_proxy", f"http://{served.host}")
    monkeypatch.setenv("HTTP_PROXY", f"http://{served.host}")
    strange = "registry.invalid/trainyard/demo:1"
    assert crane.digest(strange, plain=True) == served.digests[OWN]
    with pytest.raises(TrainyardError, match=r"cannot reach registry\.invalid.*--plain-http if it has no TLS"):
        crane.digest(strange)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert crane.digest(crane.under(served.host, OWN)) == served.digests[OWN]


def test_what_is_not_there(served: Served) -> None:
    absent = crane.Item("site.invalid/trainyard/absent:1", f"{served.host}/trainyard/absent:1")
    assert crane.digest(absent.at) == ""
    with pytest.raises(TrainyardError, match="has no trainyard/absent/manifests/1"):
        crane.mirror([absent], f"{served.host}/mirror")
    with pytest.raises(TrainyardError, match=r"cannot reach 127\.0\.0\.1:1"):
        crane.digest("127.0.0.1:1/a:1")


@pytest.mark.parametrize("prefix", ["https://registry.example.org", "", "/"])
def test_a_prefix_is_no_url(prefix: str) -> None:
    with pytest.raises(UsageError, match="write it without a scheme"):
        crane.checked(prefix)


def test_something_else_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_text("no tar")
    with pytest.raises(TrainyardError, match="not an archive of `trainyard images save`"):
        crane.load(tmp_path / "x.tar", "registry.example.org")


@pytest.mark.parametrize("index", ["[]", "{}", '{"manifests": [{"digest": "sha256:0"}]}', "no JSON"])
def test_a_layout_that_names_no_image(tmp_path: Path, index: str) -> None:
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(TrainyardError, match=r"lacks the image names in .*save it again"):
        crane.load(tmp_path, "registry.example.org")


def test_a_damaged_archive_is_refused(served: Served, tmp_path: Path) -> None:
    crane.save([served.item(OWN)], tmp_path / "images")
    blob = tmp_path / "images/blobs" / served.digests[OWN].replace(":", "/")
    blob.write_text("{}")
    with pytest.raises(TrainyardError, match=r"is damaged.*save it again"):
        crane.load(tmp_path / "images", f"{served.host}/mirror")
    blob.unlink()
    with pytest.raises(TrainyardError, match=r"a blob is missing.*save it again"):
        crane.load(tmp_path / "images", f"{served.host}/mirror")
    assert crane.digest(f"{served.host}/mirror/trainyard/demo:1") == ""


@pytest.mark.parametrize("ref", [OWN, "localhost:5000/a:1", f"h.example/a/b@sha256:{'0' * 64}"])
def test_references(ref: str) -> None:
    assert crane.Item(ref, ref).ref == ref


@pytest.mark.parametrize("ref", ["demo:1", "site.invalid/trainyard/demo"])
def test_a_reference_without_host_or_tag_is_refused(ref: str) -> None:
    with pytest.raises(TrainyardError, match="is not a full image reference"):
        crane.Item(ref, ref)
