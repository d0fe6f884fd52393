"""Access to the cluster for a person: options as in kubectl, raw objects, streams, and errors in one sentence."""

from trainyard.kube.access import Access, options
from trainyard.kube.client import Kube, KubeError

__all__ = ["Access", "Kube", "KubeError", "options"]
