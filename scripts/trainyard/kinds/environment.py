"""Environment of a pod from Secrets of its namespace: access to the store and to the site's MLflow server."""

from typing import Any

from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import MLFLOW_SECRET, SECRET, TeamConfig

Object = dict[str, Any]
EXPERIMENT = "trainyard.io/experiment"


def store_environment(secret: str = SECRET) -> list[Object]:
    """Variables with the team's keys to the store, or with the keys of another Secret of the namespace."""
    keys = {"S3_ENDPOINT": "endpoint", "S3_ACCESS_KEY": "access-key", "S3_SECRET_KEY": "secret-key"}
    optional = {"S3_REGION": "region", "S3_CA": "ca.crt"}
    found = [_secret(name, {"name": secret, "key": key}) for name, key in keys.items()]
    return found + [_secret(name, {"name": secret, "key": key, "optional": True}) for name, key in optional.items()]


def mlflow_environment(spec: JobSpec, team_config: TeamConfig) -> list[Object]:
    """Variables of `tracking` for the job's experiment: from its label, else its name without the unique suffix."""
    name = spec.labels.get(EXPERIMENT) or spec.name.rpartition("-")[0] or spec.name
    return tracking(team_config.contract.tracking_uri, team_config.team.name, name)


def tracking(server: str, team: str, experiment: str) -> list[Object]:
    """Variables for the MLflow server, the team's experiment, and the optional log-in; [] without a server."""
    if not server:
        return []
    found: list[Object] = [
        {"name": "MLFLOW_TRACKING_URI", "value": server},
        {"name": "MLFLOW_EXPERIMENT_NAME", "value": f"{team}/{experiment}"},
    ]
    keys = {"TRACKING_TOKEN": "token", "TRACKING_USERNAME": "username", "TRACKING_PASSWORD": "password", "CA": "ca.crt"}
    return found + [
        _secret(f"MLFLOW_{name}", {"name": MLFLOW_SECRET, "key": key, "optional": True}) for name, key in keys.items()
    ]


def _secret(name: str, reference: Object) -> Object:
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}
