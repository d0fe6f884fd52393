"""Retries of failed runs by Argo's own program, as of `trainyard runs retry`. The token is in memory alone."""

from __future__ import annotations

import json
import os

from kfp_api import ids
from kfp_api.caller import Caller
from kfp_api.errors import Code, RefusalError
from trainyard.errors import TrainyardError
from trainyard.kube import Access
from trainyard.pipelines.runs import actions


def retry(caller: Caller, run_id: str) -> None:
    """Runs the failed steps of a run again. Raises RefusalError or TrainyardError."""
    place = ids.read("run", run_id)
    kube = caller.kube(place.team)
    cluster = {"server": kube.host, "certificate-authority": kube.configuration.ssl_ca_cert}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "caller",
        "clusters": [{"name": "caller", "cluster": cluster}],
        "users": [{"name": "caller", "user": {"token": kube.configuration.api_key["authorization"]}}],
        "contexts": [{"name": "caller", "context": {"cluster": "caller", "user": "caller"}}],
    }
    memory = os.memfd_create("kubeconfig")
    try:
        os.write(memory, json.dumps(config).encode())
        file = f"/proc/{os.getpid()}/fd/{memory}"
        actions.retry(Access(kubeconfig=file), kube, place.name, lambda text: None)
    except TrainyardError as error:
        if "PermissionDenied" in error.what:  # of Argo's program, which has read what it may
            raise RefusalError(Code.PERMISSION_DENIED, error.what) from None
        raise
    finally:
        os.close(memory)
