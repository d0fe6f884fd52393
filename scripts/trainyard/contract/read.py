"""Conversion of raw values to the typed contract."""

from typing import Any

from trainyard.contract import render
from trainyard.contract.model import OWN, Bucket, Contract, Pool, Queue, Team, reference
from trainyard.errors import UsageError

Raw = dict[str, Any]
CPU, CUDA = "cpu", "cuda"  # values of gpuImages; an old chart has no gpuImages, and no images with CUDA
NVIDIA = "nvidia.com/"


def contract(raw: Raw, source: str) -> Contract:
    """The contract of `raw`, as the chart publishes it; if `raw` has no policy parameters, the defaults apply.

    Raises:
        UsageError: a part is missing or of the wrong type.
    """
    try:
        return _contract(raw, source)
    except KeyError as error:
        what = f"the contract lacks {error.args[0]}"
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"the contract is malformed ({error})"
    raise UsageError(what, where=source, hint="pass your values.yaml, or the data of ConfigMap trainyard-contract")


def _contract(raw: Raw, source: str) -> Contract:
    teams = raw.get("teams") or []
    release = raw.get("release") or {}
    namespace, name = release.get("namespace", "trainyard-system"), release.get("name", "trainyard")
    registry = str(raw.get("imageRegistry") or OWN).rstrip("/")
    images = {key: reference(registry, ref) for key, ref in (raw.get("images") or {}).items()}
    with_cuda = {key: reference(registry, ref) for key, ref in (raw.get("cudaImages") or {}).items()}
    pools = tuple(_pool(pool, str(raw.get("gpuImages") or CPU)) for pool in raw["nodePools"])
    policies = raw.get("policies") or {}
    storage = raw["storage"]
    levels = {one["name"]: int(one.get("value", 0)) for one in raw["priorityClasses"]}
    fill = (raw.get("teamDefaults") or {}).get("fill") or render.defaults()["teamDefaults"]["fill"]
    return Contract(
        source=source,
        teams={team["name"]: _team(team, fill, levels, pools) for team in teams},
        queues=_queues(raw, teams),
        default_queue=raw["defaultQueue"],
        priority_classes=tuple(sorted(levels, key=levels.__getitem__)),
        fill=fill,
        pools=pools,
        shared_class=storage["sharedClass"],
        buckets={one["name"]: Bucket(one["name"], one.get("teams", "none")) for one in storage["buckets"]},
        registry=registry,
        images=images,
        cuda_images=with_cuda,
        scheduler=raw["scheduler"]["name"],
        namespace=namespace,
        release=name,
        parameters=policies.get("parameters") or render.defaults()["policies"]["parameters"],
        modes={str(rule): str(mode) for rule, mode in (policies.get("modes") or {}).items()},
        raw=raw,
    )


def _team(raw: Raw, fill: Raw, levels: dict[str, int], pools: tuple[Pool, ...]) -> Team:
    """The team of a raw entry. `fill` and `pools` are the platform's; `levels` maps priority classes to values."""
    members, own = raw.get("members") or {}, raw.get("pools") or ()
    return Team(
        name=raw["name"],
        queues=tuple(dict.fromkeys([raw["name"], *(raw.get("queues") or [])])),
        priority_classes=tuple(sorted(raw.get("priorityClasses") or (), key=lambda name: levels.get(name, 0))),
        max_gpus=int(raw.get("maxGpusPerJob", 0)),
        max_claim=str((raw.get("storage") or {}).get("maxClaim", "")),
        gid=int(raw["gid"]) if raw.get("gid") is not None else None,
        quota=raw.get("quota") or {},
        limits=raw.get("limits") or {},
        egress=tuple(raw.get("egress") or ()),
        groups=tuple(members.get("groups") or ()),
        users=tuple(members.get("users") or ()),
        fill={**fill, **(raw.get("fill") or {})},
        own_fill=raw.get("ownFill") or {},
        pools=tuple(pool for pool in pools if not own or pool.name in own),
        stays=bool(own),
    )


def _queues(raw: Raw, teams: list[Raw]) -> dict[str, Queue]:
    given = {one["name"]: one for one in raw["queues"]}
    given |= {team["name"]: team.get("queue") or {} for team in teams}
    parents = {one.get("parent") or "root" for one in given.values()}
    return {
        name: Queue(
            name,
            one.get("parent") or "root",
            one.get("capability") or {},
            one.get("deserved") or {},
            leaf=name not in parents,
        )
        for name, one in given.items()
    }


def _pool(raw: Raw, images: str) -> Pool:
    gpu, count = raw.get("gpu") or {}, raw.get("count")
    return Pool(
        name=raw["name"],
        kind=raw["kind"],
        labels={str(key): str(value) for key, value in (raw.get("labels") or {}).items()},
        taint=raw.get("taint") or {},
        resource=gpu.get("resource", "") if raw["kind"] == "gpu" else "",
        gpus=int(gpu["count"]) if gpu.get("count") else None,
        nodes=int(count) if count is not None else None,
        capacity=raw.get("capacity") or {},
        spot=bool(raw.get("spot")),
        cuda=gpu.get("images", images) == CUDA and str(gpu.get("resource", "")).startswith(NVIDIA),
    )
