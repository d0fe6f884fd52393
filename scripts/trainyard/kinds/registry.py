"""One entry for every kind of training job, from which everything about the kind is derived.

Permissions, admission rules, the janitor, uninstallation, lint, `trainyard runs`, the components of pipelines and
the tables of the docs read these entries; the chart gets them as data (`files/kinds.json`, written when it is
packaged). How to add one: docs/contributing/add-a-kind.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

OPERATOR, VOLCANO = "training-operator", "volcano"  # parts of the chart that provide kinds
OWN_CUDA = "its own"
TEXT, OBJECT, FLAG, COUNT = "text", "object", "flag", "count"  # types of fields other than replicas and run policy


@dataclass(frozen=True)
class Kind:
    """One kind of job.

    Args:
        framework: name of the kind in `trainyard.yaml`.
        part: part of the chart that installs its CRD; "" for Kubernetes' own kinds.
        replicas: key of its spec that maps a role to replicas and pod template; "" if its spec has no such key.
        roles: names of its roles; the first that exists represents the job.
        lead: suffix of the name of the pod whose log to show; "" if that pod's name is random.
        container: name of the container that runs the command; the operator requires it.
        single: the role with exactly one replica.
        image: key of the contract's images for the default trainer.
        per_gpu: whether a node runs one rank per GPU; `processes` is then allowed.
        modules: packages whose import indicates code for this kind.
        environment: variables by which ranks find each other, with their values: {address}, {port}, {size}, {rank}.
        component: the function of pipelines/components/ that runs it as a step; empty: FRAMEWORK_job.
        about: one sentence on how the step's ranks find each other. Empty: the kind has no step.
        fields: further fields of its spec, with their types.
        suspend: field below its spec that ends its pods and keeps the job; "" if it has none.
        restarts: what happens to a failed rank, for the docs.
        builder: module and function in builders/ that make the spec; empty: FRAMEWORK.build.
        build: file of the first of `modules` that tells its build, with patterns for its version and for CUDA's
            version; "": its package or a plugin tells; OWN_CUDA: its package includes CUDA.
        saves_second: whether that module's `save` expects the object first, then the path.
        example: its file in manifests/jobs/, without .yaml; empty: the kind in lower case. If a function of
            builders/common.py builds the kind, `versions sync` writes it.
        number: variable for a pod's index in that example, if the operator doesn't set one.
        backend: library that averages gradients in that example if its ranks compute on CPUs.
        scales: whether its CRD has the scale subresource, for which Kubernetes rejects a negative number of workers.
    """

    kind: str
    group: str
    version: str
    plural: str
    framework: str
    part: str
    container: str
    lead: str
    image: str
    replicas: str = ""
    roles: tuple[str, ...] = ()
    single: str = ""
    per_gpu: bool = False
    modules: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    component: str = ""
    about: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    suspend: str = "runPolicy.suspend"
    restarts: str = "the pod restarts, as often as retries say"
    builder: str = ""
    build: tuple[str, str, str] | None = None
    saves_second: bool = False
    example: str = ""
    number: str = ""
    backend: str = "gloo"
    scales: bool = False

    @property
    def api_version(self) -> str:
        """API version of the kind: `kubeflow.org/v1`."""
        return f"{self.group}/{self.version}"

    @property
    def step(self) -> str:
        """Name of the function that runs the kind as a pipeline step."""
        return self.component or f"{self.framework}_job"

    @property
    def trainer(self) -> str:
        """The default trainer's name in versions.yaml: `trainer-torch` for trainerTorch."""
        return re.sub("[A-Z]", lambda big: f"-{big[0].lower()}", self.image)

    @property
    def file(self) -> str:
        """File of its example in manifests/jobs/."""
        return f"{self.example or self.kind.lower()}.yaml"

    @property
    def resource(self) -> str:
        """Full name of its CRD, also for kubectl: `pytorchjobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}"


RENDEZVOUS = {"MASTER_ADDR": "{address}", "MASTER_PORT": "{port}", "WORLD_SIZE": "{size}", "RANK": "{rank}"}
KINDS = (
    Kind(
        "PyTorchJob", "kubeflow.org", "v1", "pytorchjobs", "pytorch", OPERATOR, "pytorch", "-master-0", "trainerTorch",
        replicas="pytorchReplicaSpecs", roles=("Master", "Worker"), single="Master", per_gpu=True,
        scales=True,
        modules=("torch", "lightning", "pytorch_lightning", "accelerate", "transformers", "deepspeed"),
        environment=RENDEZVOUS,
        fields={"elasticPolicy": OBJECT, "nprocPerNode": TEXT},
        build=("version.py", r"__version__ = ['\"]([^'\"]+)", r"cuda[^=\n]* = ['\"]([\d.]+)"), saves_second=True,
        about="Trains with PyTorch: ranks get RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
    ),
    Kind(
        "TFJob", "kubeflow.org", "v1", "tfjobs", "tensorflow", OPERATOR, "tensorflow", "-chief-0", "trainerTensorflow",
        replicas="tfReplicaSpecs", roles=("Chief", "Master", "Worker", "PS", "Evaluator"),
        modules=("tensorflow", "keras", "tf_keras"),
        environment={"TF_CONFIG": "the cluster as JSON"},
        component="tf_job",
        fields={"successPolicy": TEXT, "enableDynamicWorker": FLAG},
        build=("python/platform/build_info.py", "", r"'cuda_version', '([\d.]+)'"),
        backend="parameter-server",
        about="Trains with TensorFlow: a chief, workers and parameter servers get TF_CONFIG.",
    ),
    Kind(
        "MPIJob", "kubeflow.org", "v1", "mpijobs", "mpi", OPERATOR, "mpi", "-launcher", "trainerHorovod",
        replicas="mpiReplicaSpecs", roles=("Launcher", "Worker"), single="Launcher", per_gpu=True,
        modules=("horovod", "mpi4py"),
        environment={"OMPI_COMM_WORLD_RANK": "{rank}", "OMPI_COMM_WORLD_SIZE": "{size}"},
        fields={"slotsPerWorker": COUNT, "mainContainer": TEXT, "cleanPodPolicy": TEXT},
        restarts="the launcher restarts, and all ranks with it",
        backend="mpi4py",
        about="Trains with MPI: a launcher runs the command by mpirun on all nodes.",
    ),
    Kind(
        "JAXJob", "kubeflow.org", "v1", "jaxjobs", "jax", OPERATOR, "jax", "-worker-0", "trainerJax",
        replicas="jaxReplicaSpecs", roles=("Worker",),
        modules=("jax", "flax", "optax"),
        environment={"COORDINATOR_ADDRESS": "{address}", "COORDINATOR_PORT": "{port}", "NUM_PROCESSES": "{size}",
                     "PROCESS_ID": "{rank}"},
        about="Trains with JAX: ranks get COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID.",
        builder="common.workers_job", scales=True,
        build=("version.py", r"_version = ['\"]([^'\"]+)", ""),
    ),
    Kind(
        "PaddleJob", "kubeflow.org", "v1", "paddlejobs", "paddle", OPERATOR, "paddle", "-worker-0", "trainerPaddle",
        replicas="paddleReplicaSpecs", roles=("Master", "Worker"), single="Master",
        modules=("paddle",),
        environment={"PADDLE_MASTER": "{address}:{port}", "PADDLE_NNODES": "{size}"},
        fields={"elasticPolicy": OBJECT},
        about="Trains with PaddlePaddle: ranks get PADDLE_MASTER and PADDLE_NNODES for paddle.distributed.launch.",
        builder="common.workers_job",  # for a job with a Master the operator would set up parameter servers
        scales=True, saves_second=True, number="PADDLE_TRAINER_ID",
        build=("version/__init__.py", r"full_version *= *'([^']+)'", r"cuda_version *= *'([\d.]+)'"),
    ),
    Kind(
        "XGBoostJob", "kubeflow.org", "v1", "xgboostjobs", "xgboost", OPERATOR, "xgboost", "-master-0",
        "trainerXgboost",
        replicas="xgbReplicaSpecs", roles=("Master", "Worker"), single="Master",
        modules=("xgboost",),
        environment=RENDEZVOUS,
        about="Trains with XGBoost: ranks get RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; rank 0 starts the tracker.",
        builder="common.master_job",
        build=("VERSION", r"(\S+)", OWN_CUDA),
        backend="rabit",
    ),
    Kind(
        "Job", "batch.volcano.sh", "v1alpha1", "jobs", "volcano", VOLCANO, "main", "-master-0", "trainerTorch",
        roles=("master", "worker"), per_gpu=True,
        environment=RENDEZVOUS,
        suspend="",
        restarts="the whole job restarts, as often as retries say",
        example="vcjob",
        about="Runs a gang of any kind: pods get the same variables as PyTorch's, and a name each.",
    ),
    Kind("Job", "batch", "v1", "jobs", "job", "", "main", "", "trainerTorch", suspend="suspend", example="cpu-job",
         backend="none"),
)  # fmt: skip
_BY_FRAMEWORK = {kind.framework: kind for kind in KINDS}
FRAMEWORKS = tuple(_BY_FRAMEWORK)


def of_framework(framework: str) -> Kind:
    """The kind of a framework's jobs. Raises KeyError."""
    return _BY_FRAMEWORK[framework]


def of_object(obj: Mapping[str, Any]) -> Kind | None:
    """The entry of an object's kind, regardless of its version; None if the object isn't a training job."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return next((kind for kind in KINDS if (kind.group, kind.kind) == (group, obj.get("kind"))), None)


def of_part(part: str) -> list[Kind]:
    """The kinds that a part of the chart installs."""
    return [kind for kind in KINDS if kind.part == part]


def with_gang() -> list[Kind]:
    """The kinds whose pods start together: all except Kubernetes' own."""
    return [kind for kind in KINDS if kind.part]


def rules(kinds: Iterable[Kind]) -> list[dict[str, list[str]]]:
    """Groups, versions and resources of kinds, merged by group, in the format of RBAC and admission rules."""
    joined: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        joined.setdefault((kind.group, kind.version), []).append(kind.plural)
    return [
        {"apiGroups": [group], "apiVersions": [version], "resources": plurals}
        for (group, version), plurals in joined.items()
    ]


def rendered() -> list[dict[str, Any]]:
    """The entries as the chart needs them: enough for permissions, waiting, clean-up and stopping."""
    keys = ("kind", "group", "version", "plural", "part")
    return [{key: getattr(kind, key) for key in keys} for kind in KINDS]
