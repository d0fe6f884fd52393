"""A person's way to the cluster: kubectl's habits, raw objects, streams, and errors as one sentence."""

from trainyard.kube.access import Access, options
from trainyard.kube.client import Kube, KubeError

__all__ = ["Access", "Kube", "KubeError", "options"]
