"""trainyard: one Helm chart turns a Kubernetes cluster with GPUs into a training platform that teams share."""

__version__ = "0.4.0"
