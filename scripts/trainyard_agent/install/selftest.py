"""The test behind `helm test`: checks, with few permissions, that everything the contract promises exists."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from trainyard_agent.api import Api, needed
from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect as stores


def _queue(api: Api, name: str) -> str:
    """Check that the queue is open, which takes a moment after its creation."""
    state = ""
    for _ in range(20):
        state = api.get(f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}").get("status", {}).get("state", "")
        if state == "Open":
            return "open"
        time.sleep(0.5)
    raise PlatformError(f"its state is {state or 'not set'}, not Open")


def _class(api: Api, name: str, value: int) -> str:
    found = api.get(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")["value"]
    if found != value:
        raise PlatformError(f"its value is {found}, the contract says {value}")
    return f"value {found}"


def _bucket(name: str, access: str, external: bool) -> str:
    """Write and read back where that is allowed; elsewhere check that a write is refused."""
    from minio.error import S3Error

    store = stores.client(stores.access())
    next(iter(store.list_objects(name)), None)
    if access == "read" and external:
        return "readable"
    key, text = f".trainyard-test/{os.uname().nodename}", os.urandom(64)
    try:
        store.put_object(name, key, io.BytesIO(text), len(text))
    except S3Error as error:
        if access == "read" and error.code == "AccessDenied":
            return "readable, writing refused"
        raise
    if access == "read":
        store.remove_object(name, key)
        raise PlatformError("writing is possible, the contract says read only")
    try:
        with stores.opened(store, name, key) as answer:
            if answer.read() != text:
                raise PlatformError("what was read is not what was written")
    finally:
        store.remove_object(name, key)
    return "written, read, removed"


def checks(api: Api, contract: dict[str, Any], *, storage_class: bool, queues: bool) -> dict[str, Callable[[], str]]:
    """Each check by its name; a check returns a word about what it found, or raises."""
    todo: dict[str, Callable[[], str]] = {}
    for queue in contract["queues"] if queues else []:
        todo[f"queue {queue['name']}"] = partial(_queue, api, queue["name"])
    for entry in contract["priorityClasses"]:
        todo[f"priority class {entry['name']}"] = partial(_class, api, entry["name"], entry["value"])
    shared = contract["storage"]["sharedClass"]
    if storage_class:
        path = f"/apis/storage.k8s.io/v1/storageclasses/{shared}"
        todo[f"storage class {shared}"] = lambda: api.get(path)["provisioner"]
    external = contract["storage"]["s3"]["mode"] == "external"
    for bucket in contract["storage"]["buckets"]:
        todo[f"bucket {bucket['name']}"] = partial(_bucket, bucket["name"], bucket["access"], external)
    return todo


def run(*, storage_class: bool, queues: bool) -> int:
    """Run all checks, one line each. Raises PlatformError if one failed."""
    api = Api()
    with needed("the contract can't be read"):
        held = api.get(f"/api/v1/namespaces/{api.namespace}/configmaps/trainyard-contract")
    contract = json.loads(held["data"]["contract.json"])
    print(f"ok      contract: {len(contract['nodePools'])} node pools, {len(contract['queues'])} queues", flush=True)
    bad = 0
    for name, check in checks(api, contract, storage_class=storage_class, queues=queues).items():
        try:
            print(f"ok      {name}: {check()}", flush=True)
        except Exception as error:
            bad += 1
            print(f"FAILED  {name}: {error}", flush=True)
    if bad:
        raise PlatformError(f"{bad} of the checks above failed")
    return 0
