"""What a pod learns from Secrets of its namespace: the way to the store, and to the site's MLflow server."""

from __future__ import annotations

from typing import Any

from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import MLFLOW_SECRET, SECRET, TeamConfig

Object = dict[str, Any]
EXPERIMENT = "trainyard.io/experiment"


def store_environment(secret: str = SECRET) -> list[Object]:
    """The team's keys to the store, or those of another Secret of the namespace."""
    keys = {"S3_ENDPOINT": "endpoint", "S3_ACCESS_KEY": "access-key", "S3_SECRET_KEY": "secret-key"}
    optional = {"S3_REGION": "region", "S3_CA": "ca.crt"}
    found = [_secret(name, {"name": secret, "key": key}) for name, key in keys.items()]
    return found + [_secret(name, {"name": secret, "key": key, "optional": True}) for name, key in optional.items()]


def mlflow_environment(spec: JobSpec, team_config: TeamConfig) -> list[Object]:
    """The site's MLflow server, an experiment of the team's, and the log-in where there is one; [] without a server."""
    if not team_config.mlflow:
        return []
    experiment = f"{team_config.team}/{spec.labels.get(EXPERIMENT) or spec.name.rpartition('-')[0] or spec.name}"
    found: list[Object] = [
        {"name": "MLFLOW_TRACKING_URI", "value": team_config.mlflow},
        {"name": "MLFLOW_EXPERIMENT_NAME", "value": experiment},
    ]
    keys = {"TRACKING_TOKEN": "token", "TRACKING_USERNAME": "username", "TRACKING_PASSWORD": "password", "CA": "ca.crt"}
    return found + [
        _secret(f"MLFLOW_{name}", {"name": MLFLOW_SECRET, "key": key, "optional": True}) for name, key in keys.items()
    ]


def _secret(name: str, reference: Object) -> Object:
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}
