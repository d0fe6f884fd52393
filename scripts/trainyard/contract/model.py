"""The contract's parts. Amounts stay as they are written (`16Gi`, `8`); `raw` has everything."""

from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.names import GPU

ASSUMED = "the chart's defaults"  # the source of a contract that nobody gave
CLUSTER = "cluster"  # begins the source of a contract that a cluster published


@dataclass(frozen=True)
class Queue:
    """A Volcano queue. `capability` empty: unlimited; else a resource that it leaves out counts as zero."""

    name: str
    parent: str = "root"
    capability: dict[str, Any] = field(default_factory=dict)
    deserved: dict[str, Any] = field(default_factory=dict)
    leaf: bool = True  # only a queue without queues below it runs jobs


@dataclass(frozen=True)
class Pool:
    """A kind of nodes. `gpus`: on each node; `nodes`: how many there are at most; None: not said.

    `cuda`: whether its GPUs compute, so that our images for them are those with CUDA.
    """

    name: str
    kind: str
    labels: dict[str, str] = field(default_factory=dict)
    taint: dict[str, str] = field(default_factory=dict)
    resource: str = ""
    gpus: int | None = None
    nodes: int | None = None
    capacity: dict[str, Any] = field(default_factory=dict)
    spot: bool = False
    cuda: bool = False

    @property
    def tolerations(self) -> list[dict[str, str]]:
        """What a pod needs to be let in."""
        if not self.taint:
            return []
        value = (
            {"operator": "Equal", "value": self.taint["value"]} if self.taint.get("value") else {"operator": "Exists"}
        )
        return [{"key": self.taint["key"], **value, "effect": self.taint["effect"]}]


@dataclass(frozen=True)
class Team:
    """A team, which is a namespace of the same name. Its queues begin with its own."""

    name: str
    queues: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()  # the lowest first
    max_gpus: int = 0
    max_claim: str = ""
    gid: int | None = None
    quota: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    egress: tuple[Any, ...] = ()  # rules of its network beyond the platform's
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    fill: dict[str, Any] = field(default_factory=dict)  # what a manifest that leaves it open gets
    own_fill: dict[str, Any] = field(default_factory=dict)  # what the values say of that for this team alone
    pools: tuple[Pool, ...] = ()  # where its pods may be sent to, in the platform's order
    stays: bool = False  # whether the values name these pools; else they are all there are

    def check(self, queue: str = "", priority: str = "", gpus: int = 0) -> None:
        """Raises UsageError for a queue, a priority class or a number of GPUs in one job that the team may not have."""
        for what, name, own in (("queue", queue, self.queues), ("priority class", priority, self.priority_classes)):
            if name and name not in own:
                raise UsageError(f"{what} {name} is not for team {self.name}", hint=f"use one of {', '.join(own)}")
        if gpus > self.max_gpus:
            what = f"the job asks for {gpus} GPUs over all nodes, team {self.name} may have {self.max_gpus} in one job"
            raise UsageError(what, hint="use fewer nodes or GPUs, or ask for a higher maxGpusPerJob")

    @property
    def fills(self) -> bool:
        """Whether its manifests are filled in when they are sent."""
        return bool(self.fill.get("enabled", True))

    @property
    def default_priority(self) -> str:
        """The priority class that is filled in; empty for none."""
        return str(self.fill.get("priorityClass") or "")

    @property
    def priority(self) -> str:
        """The class of jobs that name none: the team's default, else the lowest but one, with one below to wait in."""
        return self.default_priority or next(iter(self.priority_classes[1::-1]), "")

    @property
    def home(self) -> dict[str, str]:
        """Labels of the nodes that its pods without GPUs stay on; none: wherever they fit."""
        return next((pool.labels for pool in self.pools if self.stays and pool.kind == "cpu"), {})

    def pool(self, name: str, *, gpus: bool) -> Pool:
        """The pool of that name, or the default one for pods with or without GPUs. Raises UsageError."""
        kind = "gpu" if gpus else "cpu"
        if name:
            found = next((pool for pool in self.pools if pool.name == name), None)
            if found is None:
                hint = f"use one of {', '.join(pool.name for pool in self.pools)}"
                raise UsageError(f"the platform has no node pool {name}", hint=hint)
            if gpus and found.kind != kind:
                raise UsageError(f"nodes of the pool {name} have no GPU", hint="name another pool, or set gpus to 0")
            if not gpus and found.kind == "gpu":
                raise UsageError(f"the pool {name} is for work with GPUs", hint="set gpus, or name another pool")
            return found
        fitting = [pool for pool in self.pools if pool.kind == kind]
        if not fitting:
            hint = "set gpus to 0" if gpus else "set gpus"
            raise UsageError(f"the platform has no node pool of kind {kind}", hint=hint)
        return min(fitting, key=lambda pool: pool.spot)

    def gpu_pool(self, resource: str) -> Pool | None:
        """Where pods with that GPU resource run; None when the platform has no such nodes, as far as is known."""
        return min((pool for pool in self.pools if pool.resource == resource), key=lambda pool: pool.spot, default=None)


@dataclass(frozen=True)
class Bucket:
    """A bucket. `teams` says what a team may do there: none, read, or own (write below <team>/, read below shared/)."""

    name: str
    teams: str


@dataclass(frozen=True)
class Contract:
    """The whole of it. `parameters` and `modes` are those of the admission policies."""

    source: str
    teams: dict[str, Team]
    queues: dict[str, Queue]
    default_queue: str
    priority_classes: tuple[str, ...]  # the lowest first
    fill: dict[str, Any]  # what a manifest that leaves it open gets, for teams that say nothing else
    pools: tuple[Pool, ...]
    shared_class: str
    buckets: dict[str, Bucket]
    registry: str  # of the platform's images
    images: dict[str, str]  # name -> full reference
    cuda_images: dict[str, str]  # those that there are with CUDA, by the same names
    scheduler: str
    namespace: str  # of the release
    release: str
    parameters: dict[str, str]
    modes: dict[str, str]
    raw: dict[str, Any]

    def team(self, name: str) -> Team:
        """The team of that name. UsageError, with the names there are, for another."""
        if name not in self.teams:
            known = ", ".join(self.teams) or "none"
            raise UsageError(f"the contract has no team {name}; its teams: {known}", where=self.source)
        return self.teams[name]

    @property
    def gpu_pools(self) -> tuple[Pool, ...]:
        """Pools with GPUs, in their order."""
        return tuple(pool for pool in self.pools if pool.kind == "gpu")

    @property
    def gpu_resources(self) -> tuple[str, ...]:
        """Names of the GPU resources, that of the first GPU pool first."""
        return tuple(dict.fromkeys(pool.resource for pool in self.gpu_pools if pool.resource)) or (GPU,)

    @property
    def gpu_resource(self) -> str:
        """The GPU resource of jobs that say no other."""
        return self.gpu_resources[0]

    def most_gpus_per_node(self, resource: str = "") -> int | None:
        """What the largest node holds; None where a pool with that resource does not say."""
        counts = [pool.gpus for pool in self.gpu_pools if pool.resource == (resource or self.gpu_resource)]
        return None if not counts or None in counts else max(count for count in counts if count is not None)

    @property
    def tracking_uri(self) -> str:
        """Address of the MLflow server that metrics go to; "" for none."""
        return str((self.raw.get("mlflow") or {}).get("trackingUri") or "")

    @property
    def storage_classes(self) -> tuple[str, ...]:
        """Classes that a team's claims may have."""
        return self.listed("storageClasses")

    def listed(self, parameter: str) -> tuple[str, ...]:
        """A parameter of the policies that is a list."""
        return tuple(part for part in self.parameters.get(parameter, "").split(",") if part)

    @property
    def pipelines(self) -> dict[str, Any]:
        """How pipelines run: service account, bucket; {} where the site has none."""
        return self.raw.get("pipelines") or {}

    @property
    def assumed(self) -> bool:
        """Whether nobody gave it, so that it is only the chart's defaults."""
        return self.source == ASSUMED

    @property
    def live(self) -> bool:
        """Whether it was read from a cluster."""
        return self.source.startswith(f"{CLUSTER} ")

    @property
    def service_account(self) -> str:
        """That of the pods of pipelines' steps."""
        return str(self.pipelines.get("serviceAccount", "pipeline"))

    @property
    def packages(self) -> dict[str, Any]:
        """Where pip asks for what a job or a step installs."""
        return self.raw.get("packages") or {}

    @property
    def log_bucket(self) -> str:
        """Where logs of pods that are gone lie, each namespace's below its name; "" where the site keeps none."""
        return str((self.raw.get("logs") or {}).get("bucket", ""))

    @property
    def store(self) -> dict[str, Any]:
        """The object store's endpoint, region and mode: as published, else as the chart would publish it."""
        if found := self.raw.get("s3"):
            return dict(found)
        given = (self.raw.get("storage") or {}).get("s3") or {}
        own = f"https://{self.release}-minio.{self.namespace}.svc:9000"
        external = given.get("mode") == "external"
        return {**given, "endpoint": given.get("endpoint", "") if external else own}

    def limits(self, queue: str) -> list[Queue]:
        """The queue and those above it, as far as the contract knows them."""
        found: list[Queue] = []
        while queue in self.queues and self.queues[queue] not in found:
            found.append(self.queues[queue])
            queue = found[-1].parent
        return found
