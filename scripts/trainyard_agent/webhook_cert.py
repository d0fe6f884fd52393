"""Puts a CA and a server certificate for an admission webhook into a Secret, unless it already holds good ones."""

from __future__ import annotations

import base64
import subprocess
import tempfile
from pathlib import Path

from trainyard_agent.api import Api, ApiError
from trainyard_agent.say import PlatformError, say

DAYS = 3650
# The operator renews its certificate 90 days before the end; what is left must be longer than that.
MARGIN_SECONDS = 100 * 24 * 3600
# The operator reads its CA's key in this form only.
TRADITIONAL = b"-----BEGIN RSA PRIVATE KEY-----"
MANAGER = "trainyard-webhook-cert"


def _openssl(*args: str) -> None:
    done = subprocess.run(["openssl", *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlatformError(f"openssl {args[0]} failed: {done.stderr.strip().splitlines()[-1:]}")


def make(folder: Path, dns: str, ca_name: str) -> dict[str, bytes]:
    """A CA named `ca_name` and a certificate for `dns`, as the four entries of the Secret (PEM)."""
    at = {name: str(folder / name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key", "tls.csr", "ext")}
    key = ["-newkey", "rsa:2048", "-nodes"]
    _openssl(
        "req", "-x509", *key, "-keyout", at["ca.key"], "-out", at["ca.crt"], "-days", str(DAYS),
        "-subj", f"/O=training-operator/CN={ca_name}", "-addext", f"subjectAltName=DNS:{ca_name}",
        "-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign",
    )  # fmt: skip
    _openssl("req", *key, "-keyout", at["tls.key"], "-out", at["tls.csr"], "-subj", f"/CN={ca_name}")
    Path(at["ext"]).write_text(
        f"subjectAltName=DNS:{dns}\nextendedKeyUsage=serverAuth\nkeyUsage=digitalSignature,keyEncipherment\n"
        "basicConstraints=CA:FALSE\n"
    )
    _openssl(
        "x509", "-req", "-in", at["tls.csr"], "-CA", at["ca.crt"], "-CAkey", at["ca.key"], "-set_serial", "1",
        "-days", str(DAYS), "-out", at["tls.crt"], "-extfile", at["ext"],
    )  # fmt: skip
    for key_file in (at["ca.key"], at["tls.key"]):
        _openssl("rsa", "-traditional", "-in", key_file, "-out", key_file)
    return {name: Path(at[name]).read_bytes() for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")}


def good(data: dict[str, bytes], dns: str) -> bool:
    """Is this a chain for `dns` that lasts beyond the margin?"""
    if not all(data.get(name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")):
        return False
    if not data["ca.key"].startswith(TRADITIONAL):
        return False
    with tempfile.TemporaryDirectory() as folder:
        ca, crt = Path(folder, "ca"), Path(folder, "crt")
        ca.write_bytes(data["ca.crt"])
        crt.write_bytes(data["tls.crt"])
        checks = (
            ["openssl", "verify", "-CAfile", str(ca), "-verify_hostname", dns, str(crt)],
            ["openssl", "x509", "-in", str(crt), "-noout", "-checkend", str(MARGIN_SECONDS)],
            ["openssl", "x509", "-in", str(ca), "-noout", "-checkend", str(MARGIN_SECONDS)],
        )
        return all(subprocess.run(c, capture_output=True, check=False).returncode == 0 for c in checks)


def run(secret: str, dns: str, ca_name: str) -> int:
    """Look at the Secret in the pod's namespace and fill it if need be. Raises PlatformError."""
    api = Api()
    path = f"/api/v1/namespaces/{api.namespace}/secrets/{secret}"
    try:
        held = api.get(path).get("data") or {}
        if good({name: base64.b64decode(value) for name, value in held.items()}, dns):
            say(f"Secret {secret} holds a good certificate for {dns}")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            made = make(Path(folder), dns, ca_name)
        data = {name: base64.b64encode(value).decode() for name, value in made.items()}
        api.merge(path, {"data": data}, manager=MANAGER)
    except ApiError as error:
        raise PlatformError(f"the certificate for {dns} can't be kept in Secret {secret}: {error.message}") from error
    say(f"made a certificate for {dns} in Secret {secret}")
    return 0
