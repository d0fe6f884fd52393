"""When certificates expire, found without permission to read Secrets.

A TLS handshake shows the certificate that clients will one day refuse. A webhook's certificate
authority is in its configuration, for everybody who may read that.
"""

from __future__ import annotations

import base64
import os
import socket
import ssl
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainyard_agent.api import MALFORMED, Api, ApiError, listed
from trainyard_agent.say import say

KINDS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
GROUP = "/apis/admissionregistration.k8s.io/v1"
AT_ONCE = {"limit": "100"}  # objects held in memory at a time
HANDSHAKE_S = 5.0
END = "-----END CERTIFICATE-----"
MOST = 20  # certificates of a bundle that are read

Address = tuple[str, int]


def expiries(api: Api, contract: Mapping[str, Any], shown: Callable[[str, int], str]) -> dict[str, float]:
    """When each certificate expires, by name, in seconds since 1970; `shown(host, port)` returns a server's as PEM.

    Servers that can't be reached are left out.
    """
    found: dict[str, float] = {}
    servers = {"kube-apiserver": (os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc"),
                                  int(os.environ.get("KUBERNETES_SERVICE_PORT", "443")))}  # fmt: skip
    if store := _store(contract):
        servers["object-store"] = store
    for name, server, bundle in _webhooks(api, api.namespace):
        servers[f"webhook/{name}"] = server
        # A replaced authority stays in the bundle until the certificates it signed are gone: the last one counts.
        if ends := [end for pem in _parts(bundle) if (end := ends_at(pem))]:
            found[f"authority/{name}"] = max(ends)
    for name, (host, port) in servers.items():
        try:
            if end := ends_at(shown(host, port)):
                found[name] = end
        except (OSError, ValueError) as error:
            say(f"the certificate of {name} can't be seen at {host}:{port}: {error}")
    return found


def shown_by(host: str, port: int) -> str:
    """The certificate that a server presents, as PEM, with any signer. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the certificate is only read, nothing is sent
    plain = socket.create_connection((host, port), timeout=HANDSHAKE_S)
    with plain, context.wrap_socket(plain, server_hostname=host) as tls:
        shown = tls.getpeercert(binary_form=True)
    return ssl.DER_cert_to_PEM_cert(shown or b"")


def ends_at(pem: str) -> float:
    """When a certificate expires, in seconds since 1970; 0 if the text is no certificate."""
    if "BEGIN CERTIFICATE" not in pem:
        return 0.0
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-enddate"], input=pem, capture_output=True, text=True, check=False, timeout=30
    )
    name, _, at = done.stdout.strip().partition("=")
    try:
        return float(ssl.cert_time_to_seconds(at)) if name == "notAfter" else 0.0
    except ValueError:
        return 0.0


def _webhooks(api: Api, namespace: str) -> Iterator[tuple[str, Address, str]]:
    """(service's name, address, its certificate authority) of each webhook that this release serves."""
    known: set[str] = set()
    for kind in KINDS:
        try:
            for hook in (hook for one in listed(api, f"{GROUP}/{kind}", AT_ONCE) for hook in one.get("webhooks") or []):
                try:
                    client = hook["clientConfig"]
                    service, port = client.get("service") or {}, int((client.get("service") or {}).get("port") or 443)
                    name = f"{service.get('name')}:{port}"
                    if service.get("namespace") == namespace and name not in known:
                        known.add(name)
                        bundle = base64.b64decode(client.get("caBundle") or "").decode(errors="replace")
                        yield name, (f"{service['name']}.{namespace}.svc", port), bundle
                except MALFORMED:
                    continue
        except ApiError as error:
            say(f"{kind} can't be read: {error.message}")


def _parts(bundle: str) -> list[str]:
    return [f"{part}{END}\n" for part in bundle.split(END)[:MOST] if "BEGIN CERTIFICATE" in part]


def _store(contract: Mapping[str, Any]) -> Address | None:
    """The object store's address, if it uses TLS."""
    s3 = contract.get("s3") or {}
    try:
        parts = urllib.parse.urlsplit(str(s3.get("endpoint") or ""))
        return (parts.hostname, parts.port or 443) if parts.scheme == "https" and parts.hostname else None
    except ValueError:
        return None
