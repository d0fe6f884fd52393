"""Signatures by key, for sites whose networks end before any transparency log."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev.tools.build import binary

PUBLIC = "cosign.pub"
# Without services to write to, cosign uses none: no transparency log, no time stamps, no certificates.
_CONFIG = '{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json"}\n'
# What `cosign verify` and `verify-blob` need besides the key: there is no entry of a log to look for.
VERIFY = ("--insecure-ignore-tlog=true",)


class Signer:
    """Signs with one key. Without a key of the maintainers', a new pair is made for this release."""

    def __init__(self, folder: Path, key: str = "") -> None:
        """Writes the public key to the folder.

        Args:
            key: a file or a reference as cosign's `--key` takes; its password is in COSIGN_PASSWORD.
        """
        self._room = tempfile.TemporaryDirectory()
        self._config = Path(self._room.name) / "signing-config.json"
        self._config.write_text(_CONFIG)
        self.own = bool(key)
        self._key = key or f"{self._room.name}/cosign.key"
        if not key:
            _cosign("generate-key-pair", f"--output-key-prefix={self._room.name}/cosign")
        (folder / PUBLIC).write_text(_cosign("public-key", f"--key={self._key}"))

    def sign(self, refs: Sequence[str]) -> None:
        """Signs images and artifacts in a registry, each by digest, which may be one without TLS on this machine."""
        if bare := [ref for ref in refs if "@sha256:" not in ref]:
            raise TrainyardError(f"{', '.join(bare)} has no digest", hint="sign what a digest names: tags move")
        for ref in refs:
            self._call("sign", "--allow-http-registry", ref)

    def sign_file(self, file: Path) -> Path:
        """Signs a file; returns the bundle beside it."""
        bundle = file.with_name(f"{file.name}.sigstore.json")
        self._call("sign-blob", f"--bundle={bundle}", str(file))
        return bundle

    def close(self) -> None:
        """Removes a key that was made for this release: it signs no other."""
        self._room.cleanup()

    def _call(self, verb: str, *argv: str) -> None:
        _cosign(verb, "--yes", f"--key={self._key}", f"--signing-config={self._config}", *argv)


def _cosign(*argv: str) -> str:
    return run([binary("cosign"), *argv], env={"COSIGN_PASSWORD": os.environ.get("COSIGN_PASSWORD", "")}).stdout
