"""Prometheus' access to the cluster's store: a user that may only read metrics, and a token in its name.

MinIO serves its series to a token that one of its users has signed. A token of the root user would be
worth as much as its password; without any, every team would see the sizes of every other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from pathlib import Path
from typing import Any

from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import connect
from trainyard_agent.store.connect import Access

OWNER = "trainyard-metrics"  # the policy in MinIO, whose users are the keys
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["admin:Prometheus"]}]}
PREFIX = "METRICS"  # prefix of the variables that hold its key
PATHS = {"minio": "/minio/v2/metrics/cluster", "minio-buckets": "/minio/v2/metrics/bucket"}
LASTS_S = 10 * 365 * 86_400  # of the token, which is renewed whenever Prometheus starts


def wanted() -> bool:
    """Whether the environment has a key for the metrics' user."""
    return bool(os.environ.get(f"{PREFIX}_ACCESS_KEY"))


def ensure() -> None:
    """Create the user, and remove those of earlier keys. Raises PlatformError."""
    own = connect.access(PREFIX)
    try:
        admin = connect.admin(connect.access(root=True))
        held: dict[str, Any] = json.loads(admin.user_list())
        if (found := held.get(own.user, {}).get("policyName", OWNER)) != OWNER:
            raise PlatformError(f"the access key of {OWNER} is {found}'s: delete its Secret and upgrade again")
        admin.policy_add(OWNER, policy=POLICY)
        admin.user_add(own.user, own.password)
        if own.user not in held:
            admin.policy_set(OWNER, user=own.user)
        for user, about in held.items():
            if about.get("policyName") == OWNER and user != own.user:
                admin.user_remove(user)
    except PlatformError:
        raise
    except Exception as error:
        raise PlatformError(f"the store's user for its series was not made: {error}") from error
    say(f"user {own.user} may ask the store for its series, and nothing else")


def token(key: Access, now: float) -> str:
    """A token that MinIO accepts for its series, signed with a user's secret."""
    claims = {"sub": key.user, "iss": "prometheus", "exp": int(now) + LASTS_S}
    head = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "HS512", "typ": "JWT"}, claims))
    return f"{head}.{_encoded(hmac.new(key.password.encode(), head.encode(), hashlib.sha512).digest())}"


def write(folder: Path) -> None:
    """Write Prometheus' configuration file, a token and the store's authority to a folder; nothing without a key.

    Raises:
        PlatformError: the key is there and the store's address is not.
    """
    if not wanted():
        say("no key to the store's series: Prometheus does not ask it")
        return
    to = connect.access(PREFIX)
    (folder / "token").write_text(token(to, time.time()))
    secure: dict[str, Any] = {}
    if to.secure and to.ca:
        (folder / "ca.crt").write_text(to.ca)
        secure = {"tls_config": {"ca_file": str(folder / "ca.crt")}}
    jobs = [
        {
            "job_name": name,
            "scheme": "https" if to.secure else "http",
            "metrics_path": path,
            "authorization": {"credentials_file": str(folder / "token")},
            "static_configs": [{"targets": [to.host], "labels": {"job": "minio", "instance": name}}],
        }
        | secure
        for name, path in PATHS.items()
    ]
    # JSON is YAML.
    (folder / "minio.yaml").write_text(json.dumps({"scrape_configs": jobs}, indent=1))
    say(f"Prometheus asks the store at {to.host}")


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
