"""Values with monitoring on, and short names for its rendered objects."""

from __future__ import annotations

from typing import Any

import yaml
from found import one

from rendering import Objects
from trainyard.components import MONITORING

TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
S3 = {"network": {"s3": [{"cidr": "192.0.2.0/24", "port": 443}]}}
SERVICES = {
    "trainyard-prometheus": 9090,
    "trainyard-alertmanager": 9093,
    "trainyard-kube-state-metrics": 8080,
    "trainyard-node-exporter": 9100,
    "trainyard-exporter": 9400,
}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")


def on(**values: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, **S3}}, MONITORING: {"enabled": True, **values}}


def config_of(objects: Objects) -> dict[str, Any]:
    return dict(yaml.safe_load(one(objects, "ConfigMap", "trainyard-prometheus")["data"]["prometheus.yml"]))
