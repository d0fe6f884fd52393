"""Checks of a pod template by itself: images, quantities, nodes, buckets, claims."""

import re
from collections.abc import Iterator

from trainyard.contract import Contract, Pool, Team
from trainyard.policy import fill
from trainyard.policy.cel import number
from trainyard.policy.lint import code_rules
from trainyard.policy.lint.pods import Object, Pod, mapping
from trainyard.policy.lint.report import Issue, Path

BUCKET = re.compile(r"\b(?:s3|s3a|minio)://([A-Za-z0-9][A-Za-z0-9.-]*)")
CHECKPOINT = re.compile(r"check.?point|ckpt|resume", re.I)
NODE_RESOURCES = ("cpu", "memory")


def words(container: Object) -> Iterator[tuple[Path, str]]:
    """All texts that a container's program gets, with their fields."""
    for key in ("command", "args"):
        for index, word in enumerate(container.get(key) or []):
            yield (key, index), str(word)
    if container.get("source"):
        yield ("source",), str(container["source"])
    for index, one in enumerate(container.get("env") or []):
        if isinstance(one, dict) and one.get("value") is not None:
            yield ("env", index, "value"), str(one["value"])


def name_of(container: Object) -> str:
    """Name of a container in messages."""
    return f"container {container.get('name') or 'main'}"


def images(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Images without a version."""
    for container, path in pod.containers():
        image = str(container.get("image") or "")
        if image and "{{" not in image and unversioned(image):
            hint = "use a version, or better a digest: NAME:VERSION or NAME@sha256:DIGEST"
            yield "TY301", (*path, "image"), f"{name_of(container)}: image {image} has no version", hint


def unversioned(image: str) -> bool:
    """Whether the image has neither a digest nor a tag other than latest."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "@sha256:" not in image and tag in ("", "latest")


def quantities(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Invalid quantities, and limits below requests."""
    for container, path in pod.containers():
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for key, given in (("requests", requests), ("limits", limits)):
            for resource, value in given.items():
                if key == "limits" and value == requests.get(resource):
                    continue
                if "{{" not in str(value) and (number(value) is None or number(value) < 0):  # type: ignore[operator]
                    at = (*path, "resources", key, resource)
                    what = f"{name_of(container)}: invalid quantity of {resource}: {value!r}"
                    yield "TY405", at, what, "use a quantity such as 2, 500m or 16Gi"
        for resource in requests.keys() & limits.keys():
            least, most = number(requests[resource]), number(limits[resource])
            if least is not None and most is not None and least > most:
                what = f"{name_of(container)} requests {resource} {requests[resource]}, above limit {limits[resource]}"
                yield "TY405", (*path, "resources", "limits", resource), what, "raise the limit or lower the request"


def kinds(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Devices that no pool offers."""
    known = {*contract.gpu_resources, *contract.listed("allowedResources")}
    for container, path in pod.containers():
        for resource in (container.get("resources") or {}).get("limits") or {}:
            if "/" in resource and resource not in known:
                what = f"{name_of(container)} requests {resource}, which no pool has"
                hint = f"use {' or '.join(contract.gpu_resources)}"
                yield "TY406", (*path, "resources", "limits", resource), what, hint


def nodes(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Pods that are larger than every node."""
    for resource in contract.gpu_resources:
        most, asked = contract.most_gpus_per_node(resource), pod.amount(resource)
        if most is not None and asked > most:
            what = f"the pod requests {asked:g} GPUs, but the largest node has {most}"
            yield "TY401", pod.spec_path, what, f"use at most {most} in one pod, and more pods"
    pools = fitting(pod, contract)
    for resource in NODE_RESOURCES:
        caps = [number(pool.capacity.get(resource, "")) for pool in pools]
        known = [cap for cap in caps if cap is not None]
        if known and len(known) == len(caps) and pod.amount(resource) > max(known):
            what = f"the pod requests more {resource} than any eligible node has"
            yield "TY402", pod.spec_path, what, "request less"


def selected(pod: Pod, contract: Contract) -> list[Pool]:
    """Pools that match the pod's node selector and kind."""
    wanted = {key: str(value) for key, value in (pod.spec.get("nodeSelector") or {}).items()}
    own = {key for pool in contract.pools for key in pool.labels}
    matching = [
        pool
        for pool in contract.pools
        if all(pool.labels.get(key) == value for key, value in wanted.items() if key in own)
    ]
    if not _gpu(pod, contract):
        return matching
    return [pool for pool in matching if pool.kind == "gpu" and pod.amount(pool.resource)]


def fitting(pod: Pod, contract: Contract) -> list[Pool]:
    """Selected pools whose taint the pod tolerates."""
    return [pool for pool in selected(pod, contract) if tolerates(pod, pool)]


def tolerates(pod: Pod, pool: Pool) -> bool:
    """Whether the pod tolerates a pool's taint."""
    if not pool.taint or pool.taint.get("effect") == "PreferNoSchedule":
        return True
    for one in pod.spec.get("tolerations") or []:
        key, effect = one.get("key") or "", one.get("effect") or ""
        if key not in ("", pool.taint["key"]) or effect not in ("", pool.taint["effect"]):
            continue
        if one.get("operator") == "Exists" or str(one.get("value", "")) == str(pool.taint.get("value", "")):
            return True
    return False


def devices(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Platform images without CUDA on GPUs that can compute."""
    pools = [pool for pool in fitting(pod, contract) if pool.kind == "gpu"]
    if not pools or not all(pool.cuda for pool in pools):
        return
    keys = {image: key for key, image in contract.images.items() if image not in contract.cuda_images.values()}
    for container, path in pod.containers():
        image = str(container.get("image") or "")
        limits = (container.get("resources") or {}).get("limits") or {}
        if image in keys and any(number(limits.get(one, 0)) for one in contract.gpu_resources):
            what = f"{name_of(container)}: {image} computes on CPUs, and holds GPUs of pool {pools[0].name} for nothing"
            instead = contract.cuda_images.get(keys[image])
            yield "TY410", (*path, "image"), what, f"use {instead}" if instead else "use an image with CUDA"


def placement(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Pods that fit no pool. Pods without GPUs may run on nodes outside the pools."""
    pools = selected(pod, contract)
    if not pools and (pod.spec.get("nodeSelector") or _gpu(pod, contract)) and contract.pools:
        names = ", ".join(pool.name for pool in contract.pools)
        what = "no pool has the labels of nodeSelector" + (" and this kind of GPU" if _gpu(pod, contract) else "")
        yield "TY408", (*pod.spec_path, "nodeSelector"), what, f"select one of the pools {names}"
    elif pools and _gpu(pod, contract) and not fitting(pod, contract):
        taint = pools[0].taint
        shown = f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
        what = f"the pod requests GPUs but does not tolerate the taint {shown} of GPU nodes"
        hint = f"add the toleration {{key: {taint['key']}, operator: Exists, effect: {taint['effect']}}}"
        yield "TY408", (*pod.spec_path, "tolerations"), what, hint


def spot(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Work that is lost if a spot node is reclaimed."""
    pools = fitting(pod, contract)
    meant = [pool for pool in pools if pool.spot]
    if not meant or any(not pool.spot for pool in pools if not _gpu(pod, contract) or pool.kind == "gpu"):
        return
    mentions = [word for container, _ in pod.containers() for _, word in words(container)]
    mentions += [
        str(one.get("name")) for c, _ in pod.containers() for one in c.get("env") or [] if isinstance(one, dict)
    ]
    mentions += [*(pod.meta.get("annotations") or {}), *(pod.meta.get("labels") or {})]
    if not any(CHECKPOINT.search(word) for word in mentions):
        what = f"the pod goes to the spot pool {meant[0].name}, but nothing indicates checkpoints"
        hint = "save checkpoints and resume from the last one, or use on-demand nodes"
        yield "TY407", (*pod.spec_path, "nodeSelector"), what, hint


def buckets(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """URLs of buckets that are not in the contract."""
    for container, path in pod.containers():
        for at, word in words(container):
            for name in dict.fromkeys(BUCKET.findall(word)):
                if said := bucket(name, contract):
                    yield "TY504", (*path, *at), *said


def claims(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Ephemeral volumes with a storage class that teams may not use."""
    for index, volume in enumerate(pod.spec.get("volumes") or []):
        claim = mapping(mapping(mapping(volume).get("ephemeral")).get("volumeClaimTemplate"))
        if not claim:
            continue
        name = str(mapping(claim.get("spec")).get("storageClassName") or "")
        if said := storage_class(name, contract, team):
            inner = ("ephemeral", "volumeClaimTemplate", "spec", "storageClassName")
            yield "TY503", (*pod.spec_path, "volumes", index, *inner), *said


def storage_class(name: str, contract: Contract, team: Team) -> tuple[str, str] | None:
    """The problem with a storage class, and the hint; None if teams may use it, or get another class instead."""
    replaced = fill.lists(contract, team).get("clusterClasses") or ()
    if name in (*contract.storage_classes, *replaced) or not contract.storage_classes:
        return None
    what = f"storage class {name} is not for teams" if name else "the volume has no storage class"
    return what, f"use {' or '.join(contract.storage_classes)}"


def bucket(name: str, contract: Contract) -> tuple[str, str] | None:
    """The problem with a bucket, and the hint; None if a team may use it."""
    usable = [one.name for one in contract.buckets.values() if one.teams != "none"]
    if name in usable or not contract.buckets:
        return None
    hint = f"use one of {', '.join(usable) or 'none'}"
    if name in contract.buckets:
        return f"bucket {name} is not for teams", hint
    return f"unknown bucket {name}", hint


def _gpu(pod: Pod, contract: Contract) -> bool:
    return pod.gpus(contract.gpu_resources) > 0


RULES = (images, code_rules.lacking, quantities, kinds, nodes, placement, devices, spot, buckets, claims)
