"""Transfers between a member's machine and the team's folder of the object store, without reading a Secret.

    with transfer.open_store(kube, team_config) as store:
        store.put(Path("code.tar.gz"), "runs/vision/code/1f…c.tar.gz")
        store.tree("runs/vision/jobs/digits-x2k4d", Path("results"))

A pod of the team, which gets the keys like any of its pods, relays the data: we talk to it as `kubectl exec` does.
"""

from trainyard.training.transfer.pod import manifest, open_store
from trainyard.training.transfer.store import Store, StoredObject, StoreUnavailableError, is_retryable

__all__ = ["Store", "StoreUnavailableError", "StoredObject", "is_retryable", "manifest", "open_store"]
