"""An issuer of OpenID Connect for tests: codes with PKCE, ID tokens that are signed, refresh tokens that turn over."""

import base64
import datetime
import hashlib
import http.server
import ipaddress
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

CLIENT, SECRET = "trainyard-notebooks", "the-hub-alone-knows"


def coded(data: bytes | dict[str, Any]) -> str:
    """Bytes, or an object as JSON, as tokens have them."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class Issuer:
    """People by their name, with their groups; who is taken out of `people` has left."""

    def __init__(self, folder: Path) -> None:
        self.people: dict[str, list[str]] = {}
        self.lifetime = 600.0  # of ID tokens, in seconds
        self.silent = False  # whether it gives nobody a token for now
        self.renewed: list[str] = []  # whose tokens were renewed, one entry each time
        self.url = ""
        self.ca = folder / "issuer.crt"
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._codes: dict[str, tuple[str, str]] = {}  # code: person and what proves who asked
        self._refresh: dict[str, str] = {}
        self._pair = _certificate(folder)

    def token(self, person: str, **changed: Any) -> str:
        """An ID token of a person; `changed` claims are for forgeries."""
        now = time.time()
        claims = {
            "iss": self.url, "aud": CLIENT, "sub": person, "email": person, "email_verified": True,
            "groups": self.people[person], "iat": int(now), "exp": int(now + self.lifetime),
        } | changed  # fmt: skip
        signed = f"{coded({'alg': 'RS256', 'kid': 'one', 'typ': 'JWT'})}.{coded(claims)}"
        return f"{signed}.{coded(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def documents(self, path: str) -> dict[str, Any] | None:
        """What it publishes."""
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        if path == "/keys":
            numbers = self._key.public_key().public_numbers()
            n, e = (coded(one.to_bytes((one.bit_length() + 7) // 8, "big")) for one in (numbers.n, numbers.e))
            return {"keys": [{"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": n, "e": e}]}
        return None

    def code(self, asked: dict[str, str]) -> str:
        """Where a person who logs in is sent; the person is what a browser would send from a form."""
        assert asked["client_id"] == CLIENT and asked["code_challenge_method"] == "S256"
        if asked.get("person") not in self.people:
            return f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': asked['state']})}"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked["person"], asked["code_challenge"]
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchanged(self, asked: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Tokens for a code or a refresh token, each once."""
        if self.silent:
            return 503, {"error": "temporarily_unavailable"}
        if asked.get("client_id") != CLIENT or asked.get("client_secret") != SECRET:
            return 401, {"error": "invalid_client"}
        if asked["grant_type"] == "refresh_token":
            person = self._refresh.pop(asked["refresh_token"], "")
            self.renewed.append(person)
        else:
            person, challenge = self._codes.pop(asked["code"], ("", ""))
            if coded(hashlib.sha256(asked.get("code_verifier", "").encode()).digest()) != challenge:
                person = ""
        if person not in self.people:
            return 400, {"error": "invalid_grant", "error_description": "the person has left"}
        fresh = secrets.token_urlsafe(16)
        self._refresh[fresh] = person
        answer = {"access_token": secrets.token_urlsafe(8), "token_type": "bearer", "id_token": self.token(person)}
        return 200, {**answer, "refresh_token": fresh, "expires_in": int(self.lifetime)}


@contextmanager
def running(folder: Path) -> Iterator[Issuer]:
    """Serves one on a port of its own for the time of the body."""
    issuer = Issuer(folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/auth":
                self.send_response(302)
                self.send_header("Location", issuer.code({k: v[0] for k, v in parse_qs(parts.query).items()}))
                self.end_headers()
                return
            found = issuer.documents(parts.path)
            self._say(200 if found else 404, found or {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._say(*issuer.exchanged({k: v[0] for k, v in parse_qs(body).items()}))

        def _say(self, status: int, data: dict[str, Any]) -> None:
            text = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None: ...

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(issuer._pair)
    web.socket = tls.wrap_socket(web.socket, server_side=True)
    issuer.url = f"https://127.0.0.1:{web.server_address[1]}"
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def _certificate(folder: Path) -> Path:
    """A certificate of 127.0.0.1 that is its own authority, with its key in one file; issuer.crt has no key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer of tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "issuer.crt").write_bytes(public)
    (folder / "issuer.pem").write_bytes(public + private)
    return folder / "issuer.pem"
