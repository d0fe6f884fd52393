"""The parts of the contract. Quantities stay as written (`16Gi`, `8`); `raw` has everything."""

from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.names import GPU

ASSUMED = "the chart's defaults"  # source of the contract if none was given
OWN = "site.invalid"  # host of the platform's own images in manifests and examples; nobody can own it
CLUSTER = "cluster"  # prefix of the source of a contract that a cluster published


@dataclass(frozen=True)
class Queue:
    """A Volcano queue. An empty `capability` is unlimited; in any other, a missing resource counts as zero."""

    name: str
    parent: str = "root"
    capability: dict[str, Any] = field(default_factory=dict)
    deserved: dict[str, Any] = field(default_factory=dict)
    leaf: bool = True  # only a leaf queue runs jobs


@dataclass(frozen=True)
class Pool:
    """A node pool. `gpus`: GPUs of each node; `nodes`: maximum number of nodes; None: unspecified.

    `cuda`: whether its GPUs can compute, so that its pods get our images with CUDA.
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
        """Tolerations that a pod needs to run in this pool."""
        if not self.taint:
            return []
        value = (
            {"operator": "Equal", "value": self.taint["value"]} if self.taint.get("value") else {"operator": "Exists"}
        )
        return [{"key": self.taint["key"], **value, "effect": self.taint["effect"]}]


@dataclass(frozen=True)
class Team:
    """A team, which is a namespace of the same name. The queue of that name is the first of `queues`."""

    name: str
    queues: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()  # lowest first
    max_gpus: int = 0
    max_claim: str = ""
    gid: int | None = None
    quota: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    egress: tuple[Any, ...] = ()  # network policy rules in addition to the platform's
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    fill: dict[str, Any] = field(default_factory=dict)  # defaults for fields that a manifest omits
    own_fill: dict[str, Any] = field(default_factory=dict)  # the defaults that the values set for this team alone
    pools: tuple[Pool, ...] = ()  # node pools that its pods may use, in the platform's order
    stays: bool = False  # whether the values restrict the team to these pools; otherwise they are all pools

    def check(self, queue: str = "", priority: str = "", gpus: int = 0) -> None:
        """Raises UsageError for a queue, a priority class or a number of GPUs in one job that the team may not use."""
        for what, name, own in (("queue", queue, self.queues), ("priority class", priority, self.priority_classes)):
            if name and name not in own:
                raise UsageError(f"{what} {name} is not for team {self.name}", hint=f"use one of {', '.join(own)}")
        if gpus > self.max_gpus:
            what = f"the job requests {gpus} GPUs over all nodes, but team {self.name} may use {self.max_gpus} per job"
            raise UsageError(what, hint="use fewer nodes or GPUs, or ask for a higher maxGpusPerJob")

    @property
    def fills(self) -> bool:
        """Whether the platform fills in defaults when the team submits a manifest."""
        return bool(self.fill.get("enabled", True))

    @property
    def default_priority(self) -> str:
        """Priority class to fill in; empty for none."""
        return str(self.fill.get("priorityClass") or "")

    @property
    def priority(self) -> str:
        """Class of jobs that name none: the team's default, else its second lowest, so that one remains below it."""
        return self.default_priority or next(iter(self.priority_classes[1::-1]), "")

    @property
    def home(self) -> dict[str, str]:
        """Labels of the nodes to which its pods without GPUs are bound; empty if they may run anywhere."""
        return next((pool.labels for pool in self.pools if self.stays and pool.kind == "cpu"), {})

    def pool(self, name: str, *, gpus: bool) -> Pool:
        """The pool with that name, or the default pool for pods with or without GPUs. Raises UsageError."""
        kind = "gpu" if gpus else "cpu"
        if name:
            found = next((pool for pool in self.pools if pool.name == name), None)
            if found is None:
                hint = f"use one of {', '.join(pool.name for pool in self.pools)}"
                raise UsageError(f"the platform has no node pool {name}", hint=hint)
            if gpus and found.kind != kind:
                raise UsageError(f"nodes of the pool {name} have no GPUs", hint="use another pool, or set gpus to 0")
            if not gpus and found.kind == "gpu":
                raise UsageError(f"the pool {name} is for jobs with GPUs", hint="set gpus, or use another pool")
            return found
        fitting = [pool for pool in self.pools if pool.kind == kind]
        if not fitting:
            hint = "set gpus to 0" if gpus else "set gpus"
            raise UsageError(f"the platform has no node pool of kind {kind}", hint=hint)
        return min(fitting, key=lambda pool: pool.spot)

    def gpu_pool(self, resource: str) -> Pool | None:
        """The pool that runs pods with that GPU resource; None if the contract lists no such pool."""
        return min((pool for pool in self.pools if pool.resource == resource), key=lambda pool: pool.spot, default=None)


@dataclass(frozen=True)
class Bucket:
    """A bucket. `teams` is a team's access: none, read, or own (write below <team>/, read below shared/)."""

    name: str
    teams: str


def reference(registry: str, name: str) -> str:
    """The full name of an image. One without a host, or with OWN for a host, is in the platform's registry."""
    name = name.removeprefix(f"{OWN}/")
    head, slash, _ = name.partition("/")
    hosted = slash and ("." in head or ":" in head or head == "localhost")
    return name if hosted else f"{registry}/{name}"


@dataclass(frozen=True)
class Contract:
    """The whole contract. `parameters` and `modes` belong to the admission policies."""

    source: str
    teams: dict[str, Team]
    queues: dict[str, Queue]
    default_queue: str
    priority_classes: tuple[str, ...]  # lowest first
    fill: dict[str, Any]  # defaults for fields that a manifest omits, for teams without defaults of their own
    pools: tuple[Pool, ...]
    shared_class: str
    buckets: dict[str, Bucket]
    registry: str  # registry of the platform's images
    images: dict[str, str]  # name -> full reference
    cuda_images: dict[str, str]  # the images that also exist with CUDA, by the same names
    scheduler: str
    namespace: str  # namespace of the release
    release: str
    parameters: dict[str, str]
    modes: dict[str, str]
    raw: dict[str, Any]

    def team(self, name: str) -> Team:
        """The team with that name. Raises UsageError, which lists the teams, for any other."""
        if name not in self.teams:
            known = ", ".join(self.teams) or "none"
            raise UsageError(f"the contract has no team {name}; its teams: {known}", where=self.source)
        return self.teams[name]

    def reference(self, name: str) -> str:
        """The full name of an image of the platform, as `reference` of this module gives it."""
        return reference(self.registry, name)

    def pulled(self, image: str) -> str:
        """Where nodes pull an image that a step names: as it stands, unless its host is OWN."""
        return self.reference(image) if image.startswith(f"{OWN}/") else image

    @property
    def gpu_pools(self) -> tuple[Pool, ...]:
        """Pools with GPUs, in the platform's order."""
        return tuple(pool for pool in self.pools if pool.kind == "gpu")

    @property
    def gpu_resources(self) -> tuple[str, ...]:
        """Names of the GPU resources; the first GPU pool's comes first."""
        return tuple(dict.fromkeys(pool.resource for pool in self.gpu_pools if pool.resource)) or (GPU,)

    @property
    def gpu_resource(self) -> str:
        """GPU resource of jobs that name none."""
        return self.gpu_resources[0]

    def most_gpus_per_node(self, resource: str = "") -> int | None:
        """GPUs of the largest node with that resource; None if one of its pools does not specify the number."""
        counts = [pool.gpus for pool in self.gpu_pools if pool.resource == (resource or self.gpu_resource)]
        return None if not counts or None in counts else max(count for count in counts if count is not None)

    @property
    def tracking_uri(self) -> str:
        """Address of the MLflow server that receives metrics; "" for none."""
        return str((self.raw.get("mlflow") or {}).get("trackingUri") or "")

    @property
    def storage_classes(self) -> tuple[str, ...]:
        """Storage classes that a team's claims may use."""
        return self.listed("storageClasses")

    def listed(self, parameter: str) -> tuple[str, ...]:
        """Items of a policy parameter that is a list."""
        return tuple(part for part in self.parameters.get(parameter, "").split(",") if part)

    @property
    def pipelines(self) -> dict[str, Any]:
        """Settings of pipelines: service account, bucket; {} if the site has no pipelines."""
        return self.raw.get("pipelines") or {}

    @property
    def assumed(self) -> bool:
        """Whether the contract is only the chart's defaults, because none was given."""
        return self.source == ASSUMED

    @property
    def live(self) -> bool:
        """Whether the contract was read from a cluster."""
        return self.source.startswith(f"{CLUSTER} ")

    @property
    def service_account(self) -> str:
        """Service account of the pods of pipeline steps."""
        return str(self.pipelines.get("serviceAccount", "pipeline"))

    @property
    def packages(self) -> dict[str, Any]:
        """Package index from which pip installs what a job or a step requires."""
        return self.raw.get("packages") or {}

    @property
    def log_bucket(self) -> str:
        """Bucket for the logs of deleted pods, below their namespace's name; "" if the site keeps none."""
        return str((self.raw.get("logs") or {}).get("bucket", ""))

    @property
    def store(self) -> dict[str, Any]:
        """Endpoint, region and mode of the object store: as published, else as the chart would publish them."""
        if found := self.raw.get("s3"):
            return dict(found)
        given = (self.raw.get("storage") or {}).get("s3") or {}
        own = f"https://{self.release}-minio.{self.namespace}.svc:9000"
        external = given.get("mode") == "external"
        return {**given, "endpoint": given.get("endpoint", "") if external else own}

    def limits(self, queue: str) -> list[Queue]:
        """The queue and its ancestors, as far as the contract lists them."""
        found: list[Queue] = []
        while queue in self.queues and self.queues[queue] not in found:
            found.append(self.queues[queue])
            queue = found[-1].parent
        return found
