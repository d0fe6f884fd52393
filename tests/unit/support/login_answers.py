"""An issuer's answers in tests of log-in: tokens, and a sequence of answers."""

import base64
import json
import time
from typing import Any

from trainyard.login import asking

URL, CLIENT = "https://login.example.org", "trainyard"
DOCUMENT = {"issuer": URL, "authorization_endpoint": f"{URL}/auth", "token_endpoint": f"{URL}/token"}


def signed(**claims: Any) -> str:
    """A token with these claims and an invalid signature."""
    said = {"iss": URL, "aud": CLIENT, "exp": time.time() + 900, "email": "ada@example.org"} | claims
    return f"e30.{base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip('=')}.sig"


class Fixed(asking.IssuerClient):
    """An issuer with fixed answers; `asked` has the requests."""

    def __init__(self, *answers: Any) -> None:
        self.__dict__["answers"], self.__dict__["asked"] = list(answers), []

    def get(self, url: str, headers: Any = None) -> dict[str, Any]:
        return self.post(url, {})

    def post(self, url: str, form: Any) -> dict[str, Any]:
        self.__dict__["asked"].append((url, dict(form)))
        answer = self.__dict__["answers"].pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found
