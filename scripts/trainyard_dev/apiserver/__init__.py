"""A real API server for tests and offline checks: etcd and kube-apiserver on this machine, no nodes, no controllers."""

from trainyard_dev.apiserver.client import Answer, Client, Identity
from trainyard_dev.apiserver.server import ApiServer, running

__all__ = ["Answer", "ApiServer", "Client", "Identity", "running"]
