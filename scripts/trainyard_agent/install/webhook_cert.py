"""Writes a webhook's CA and certificate into its Secret, unless that has valid ones, and into the server's folder."""

from __future__ import annotations

import base64
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trainyard_agent.api import Api, needed
from trainyard_agent.say import PlatformError, say

DAYS = 3650
# The operator renews its certificate 90 days before it expires; ours must be valid for longer than that.
MARGIN_SECONDS = 100 * 24 * 3600
# The operator accepts its CA's key in this form only.
TRADITIONAL = b"-----BEGIN RSA PRIVATE KEY-----"
MANAGER = "trainyard-webhook-cert"
ENTRIES = ("ca.crt", "ca.key", "tls.crt", "tls.key")
# Files that a server needs; the authority's key stays in the Secret.
SERVED = ("ca.crt", "tls.crt", "tls.key")


class Place(NamedTuple):
    """The Secret that keeps the certificate."""

    namespace: str
    secret: str


def _openssl(*args: str) -> None:
    done = subprocess.run(["openssl", *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlatformError(f"openssl {args[0]} failed: {done.stderr.strip().splitlines()[-1:]}")


def make(folder: Path, names: Sequence[str], ca_name: str) -> dict[str, bytes]:
    """A CA named `ca_name` and a certificate for all of `names`, as the four entries of the Secret (PEM)."""
    at = {name: str(folder / name) for name in (*ENTRIES, "tls.csr", "ext")}
    key = ["-newkey", "rsa:2048", "-nodes"]
    _openssl(
        "req", "-x509", *key, "-keyout", at["ca.key"], "-out", at["ca.crt"], "-days", str(DAYS),
        "-subj", f"/O=training-operator/CN={ca_name}", "-addext", f"subjectAltName=DNS:{ca_name}",
        "-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign",
    )  # fmt: skip
    _openssl("req", *key, "-keyout", at["tls.key"], "-out", at["tls.csr"], "-subj", f"/CN={ca_name}")
    known = ",".join(f"DNS:{name}" for name in names)
    Path(at["ext"]).write_text(
        f"subjectAltName={known}\nextendedKeyUsage=serverAuth\nkeyUsage=digitalSignature,keyEncipherment\n"
        "basicConstraints=CA:FALSE\n"
    )
    _openssl(
        "x509", "-req", "-in", at["tls.csr"], "-CA", at["ca.crt"], "-CAkey", at["ca.key"], "-set_serial", "1",
        "-days", str(DAYS), "-out", at["tls.crt"], "-extfile", at["ext"],
    )  # fmt: skip
    for key_file in (at["ca.key"], at["tls.key"]):
        _openssl("rsa", "-traditional", "-in", key_file, "-out", key_file)
    return {name: Path(at[name]).read_bytes() for name in ENTRIES}


def good(data: Mapping[str, bytes], names: Sequence[str]) -> bool:
    """Whether this is a chain for all of `names` that stays valid beyond the margin."""
    if not all(data.get(name) for name in ENTRIES):
        return False
    if not data["ca.key"].startswith(TRADITIONAL):
        return False
    with tempfile.TemporaryDirectory() as folder:
        ca, crt = Path(folder, "ca"), Path(folder, "crt")
        ca.write_bytes(data["ca.crt"])
        crt.write_bytes(data["tls.crt"])
        checks = (
            *(["openssl", "verify", "-CAfile", str(ca), "-verify_hostname", name, str(crt)] for name in names),
            ["openssl", "x509", "-in", str(crt), "-noout", "-checkend", str(MARGIN_SECONDS)],
            ["openssl", "x509", "-in", str(ca), "-noout", "-checkend", str(MARGIN_SECONDS)],
        )
        return all(subprocess.run(c, capture_output=True, check=False).returncode == 0 for c in checks)


def run(api: Api, place: Place, names: Sequence[str], ca_name: str, to: Path) -> int:
    """Fill the Secret if necessary, and write what a server needs of it to the folder `to`. Raises PlatformError."""
    path = f"/api/v1/namespaces/{place.namespace}/secrets/{place.secret}"
    known = ", ".join(names)
    try:
        with needed(f"the certificate for {known} can't be kept in Secret {place.secret} of {place.namespace}"):
            held = api.get(path).get("data") or {}
            data = {name: base64.b64decode(value) for name, value in held.items()}
            if good(data, names):
                say(f"Secret {place.secret} holds a good certificate for {known}")
            else:
                with tempfile.TemporaryDirectory() as folder:
                    data = make(Path(folder), names, ca_name)
                encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
                api.merge(path, {"data": encoded}, manager=MANAGER)
                say(f"made a certificate for {known} in Secret {place.secret}")
        for name in SERVED:
            (to / name).write_bytes(data[name])
    except OSError as error:
        raise PlatformError(f"the certificate for {known} can't be written: {error}") from error
    return 0
