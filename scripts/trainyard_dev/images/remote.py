"""A client of image registries, as the OCI distribution specification has them: manifests and blobs over HTTP."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from trainyard.errors import TrainyardError
from trainyard_dev import proxies

INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
HUB = "registry-1.docker.io"
CHUNK = 1 << 20
TIMEOUT_S = 60


@dataclass(frozen=True)
class Place:
    """A repository and a tag or digest in a registry; `host` may have a port."""

    host: str
    repository: str
    reference: str

    @classmethod
    def parse(cls, ref: str) -> Place:
        """From `host[:port]/repository:tag` or `…@sha256:…`.

        Raises:
            TrainyardError: it has no host, or neither tag nor digest.
        """
        host, _, rest = ref.partition("/")
        sign = "@" if "@" in rest else ":"
        repository, _, reference = rest.rpartition(sign)
        if not (repository and reference):
            raise TrainyardError(f"`{ref}` is no full image reference", hint="write it as HOST/REPOSITORY:TAG")
        return cls(host, repository, reference)

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}{'@' if ':' in self.reference else ':'}{self.reference}"


@dataclass(frozen=True)
class Manifest:
    """A manifest or index with its exact bytes, by which its digest is reckoned."""

    media_type: str
    body: bytes

    @property
    def digest(self) -> str:
        """Its digest."""
        return f"sha256:{hashlib.sha256(self.body).hexdigest()}"

    @property
    def content(self) -> dict[str, Any]:
        """What it says."""
        return json.loads(self.body)

    def blobs(self) -> list[dict[str, Any]]:
        """Descriptors of its configuration and layers; none for an index. Layers kept elsewhere are left out."""
        listed = [self.content["config"], *self.content["layers"]] if "layers" in self.content else []
        return [one for one in listed if not one.get("urls")]

    def children(self) -> list[dict[str, Any]]:
        """Descriptors of an index' manifests; none for a manifest."""
        return self.content.get("manifests", []) if "layers" not in self.content else []


@dataclass
class Registry:
    """One registry. Plain HTTP is spoken to this machine's own, and where it is asked for."""

    host: str
    plain: bool = False
    _tokens: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The URL that paths are added to."""
        name = self.host.partition(":")[0]
        scheme = "http" if self.plain or name in ("localhost", "127.0.0.1") else "https"
        return f"{scheme}://{HUB if self.host == 'docker.io' else self.host}"

    def manifest(self, place: Place, reference: str = "") -> Manifest:
        """The manifest or index behind a tag or digest."""
        accept = ", ".join((*INDEXES, *MANIFESTS))
        path = f"/v2/{place.repository}/manifests/{reference or place.reference}"
        with self._call("GET", path, place.repository, headers={"Accept": accept}) as answer:
            found = Manifest(answer.headers.get("Content-Type", "").partition(";")[0], answer.read())
        wanted = reference or place.reference
        if wanted.startswith("sha256:") and found.digest != wanted:
            raise TrainyardError(f"{place.host} answered {found.digest} for {wanted}", where=str(place))
        return found

    def digest(self, place: Place) -> str:
        """Digest of what the registry holds under a tag, or "" when it holds nothing."""
        path = f"/v2/{place.repository}/manifests/{place.reference}"
        try:
            accept = {"Accept": ", ".join((*INDEXES, *MANIFESTS))}
            with self._call("HEAD", path, place.repository, headers=accept) as answer:
                return answer.headers.get("Docker-Content-Digest", "")
        except MissingError:
            return ""

    def blob(self, place: Place, digest: str) -> IO[bytes]:
        """A blob to read; the caller closes it."""
        return self._call("GET", f"/v2/{place.repository}/blobs/{digest}", place.repository)

    def has_blob(self, place: Place, digest: str) -> bool:
        """Whether the repository holds the blob."""
        try:
            self._call("HEAD", f"/v2/{place.repository}/blobs/{digest}", place.repository).close()
        except MissingError:
            return False
        return True

    def push_blob(self, place: Place, digest: str, size: int, body: IO[bytes]) -> None:
        """Uploads a blob of `size` bytes; the registry checks its digest."""
        with self._call("POST", f"/v2/{place.repository}/blobs/uploads/", place.repository, push=True) as answer:
            target = urllib.parse.urljoin(self.base, answer.headers["Location"])
        target += ("&" if "?" in target else "?") + urllib.parse.urlencode({"digest": digest})
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._call("PUT", target, place.repository, push=True, headers=headers, body=body).close()

    def mount_blob(self, place: Place, digest: str, repository: str) -> bool:
        """Takes a blob over from another repository of this registry, without its bytes; False where it may not."""
        query = urllib.parse.urlencode({"mount": digest, "from": repository})
        path = f"/v2/{place.repository}/blobs/uploads/?{query}"
        with self._call("POST", path, place.repository, push=True) as answer:
            return answer.status == 201

    def push_manifest(self, place: Place, manifest: Manifest, reference: str = "") -> None:
        """Uploads a manifest or index under `reference`, or the place's own."""
        path = f"/v2/{place.repository}/manifests/{reference or place.reference}"
        headers = {"Content-Type": manifest.media_type}
        self._call("PUT", path, place.repository, push=True, headers=headers, body=manifest.body).close()

    def _call(
        self,
        method: str,
        path: str,
        repository: str,
        *,
        push: bool = False,
        headers: dict[str, str] | None = None,
        body: IO[bytes] | bytes | None = None,
    ) -> Any:
        """One request; a challenge is answered once, with a token or with the stored login."""
        url = path if "://" in path else self.base + path
        scope = f"repository:{repository}:{'pull,push' if push else 'pull'}"
        for attempt in (1, 2):
            request = urllib.request.Request(url, method=method, data=body, headers=headers or {})
            if login := self._tokens.get(scope):
                request.add_unredirected_header("Authorization", login)
            try:
                return proxies.open_url(request, timeout=TIMEOUT_S)
            except urllib.error.HTTPError as error:
                if error.code == 401 and attempt == 1:
                    self._tokens[scope] = self._login(error.headers.get("WWW-Authenticate", ""), scope)
                    continue
                if error.code == 404:
                    raise MissingError(f"{self.host} has no {url.partition('/v2/')[2]}", hint="") from None
                raise TrainyardError(
                    f"{self.host} answered {error.code} to {method} {url.partition('/v2/')[2].partition('?')[0]}",
                    hint=f"log in to it with `docker login {self.host}` or `podman login {self.host}`"
                    if error.code in (401, 403)
                    else "see its log",
                ) from None
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                reason = getattr(error, "reason", error)
                raise TrainyardError(
                    f"{self.host} can't be reached: {reason}", hint="check the name, and --plain-http if it has no TLS"
                ) from None
        raise AssertionError("two attempts end above")

    def _login(self, challenge: str, scope: str) -> str:
        stored = stored_login(self.host)
        if not challenge.lower().startswith("bearer"):
            return f"Basic {stored}"
        fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        query = {"service": fields.get("service", ""), "scope": scope}
        request = urllib.request.Request(f"{fields['realm']}?{urllib.parse.urlencode(query)}")
        if stored:
            request.add_header("Authorization", f"Basic {stored}")
        try:
            with proxies.open_url(request, timeout=TIMEOUT_S) as answer:
                token = json.load(answer)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise TrainyardError(f"{self.host} gave no token: {error}", hint=f"docker login {self.host}") from None
        return f"Bearer {token.get('token') or token.get('access_token')}"


class MissingError(TrainyardError):
    """The registry holds no such thing."""


def stored_login(host: str) -> str:
    """What docker or podman stored for a registry, as `user:password` in base64; "" without one."""
    names = [host, f"https://{host}", *(["https://index.docker.io/v1/"] if host == "docker.io" else [])]
    for file in _login_files():
        try:
            logins = json.loads(file.read_text()).get("auths", {})
        except (OSError, ValueError):
            continue
        for name in names:
            entry = logins.get(name) or {}
            if entry.get("auth"):
                return entry["auth"]
            if entry.get("username"):
                return base64.b64encode(f"{entry['username']}:{entry['password']}".encode()).decode()
    return ""


def _login_files() -> Iterator[Path]:
    if given := os.environ.get("REGISTRY_AUTH_FILE"):
        yield Path(given)
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers/auth.json"
    yield Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
