"""Every kind of training job, one entry each: all that the platform knows of it is derived from here.

Rights, admission rules, the janitor, uninstallation, lint, what `trainyard runs` shows, the components of pipelines and
the tables of the docs read these entries; the chart gets them as data (`files/kinds.json`, written when it is
packaged). How to add one: docs/contributing/add-a-kind.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

OPERATOR, VOLCANO = "training-operator", "volcano"  # parts of the chart that bring kinds
OWN_CUDA = "its own"
TEXT, OBJECT, FLAG, COUNT = "text", "object", "flag", "count"  # of fields beside replicas and run policy


@dataclass(frozen=True)
class Kind:
    """One kind of job.

    Args:
        framework: what users call it in `trainyard.yaml`.
        part: the part of the chart that brings its CRD; "" for Kubernetes' own.
        replicas: the key of its spec that maps a role to replicas and pod template; "" for a kind of another shape.
        roles: names of its roles; the first one there is speaks for the job.
        lead: the end of the name of the pod whose log tells the story; "" where that pod's name is random.
        container: the container that runs the command; an operator's kind is refused without one of that name.
        single: the role of which there is only one.
        image: key of the contract's images for the default trainer.
        per_gpu: whether a node runs one rank for each of its GPUs; `processes` may be set then.
        modules: packages whose import tells that code is for this kind.
        environment: variables by which ranks find each other, with what they hold: {address}, {port}, {size}, {rank}.
        component: the function of pipelines/components/ that runs it as a step; empty: FRAMEWORK_job.
        about: what that step does, in one sentence: how ranks find each other. Empty: there is no such step.
        fields: further fields of its spec, with what they hold.
        suspend: below its spec, the field that ends its pods and keeps the job; "" where it has none.
        restarts: what happens to a failed rank, for the docs.
        builder: the module of builders/ and its function that makes the spec; empty: FRAMEWORK.build.
        build: the file of the first of `modules` that tells what it was built for, with patterns of its version and of
            CUDA's; "": its package or a plugin has that; OWN_CUDA: its package brings a CUDA of its own.
        saves_second: whether that module's `save` takes what is saved first, then the place.
        example: its file in manifests/jobs/, without .yaml; empty: the kind in lower case. With a function of
            builders/common.py, `versions sync` writes it.
        number: the variable in which that example gives a pod its number, where the operator tells it none.
        backend: what averages gradients in that example where its ranks compute on CPUs.
        scales: whether its CRD has the subresource scale, for which Kubernetes takes no negative number of workers.
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
        """`kubeflow.org/v1`."""
        return f"{self.group}/{self.version}"

    @property
    def step(self) -> str:
        """The function that runs it as a step of a pipeline."""
        return self.component or f"{self.framework}_job"

    @property
    def trainer(self) -> str:
        """The default trainer's name in versions.yaml: `trainer-torch` for trainerTorch."""
        return re.sub("[A-Z]", lambda big: f"-{big[0].lower()}", self.image)

    @property
    def file(self) -> str:
        """Its example in manifests/jobs/."""
        return f"{self.example or self.kind.lower()}.yaml"

    @property
    def resource(self) -> str:
        """The name of its CRD, and for kubectl: `pytorchjobs.kubeflow.org`."""
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
        builder="common.workers_job",  # with a Master the operator would set up parameter servers
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
    """The kind that a framework's jobs have. Raises KeyError."""
    return _BY_FRAMEWORK[framework]


def of_object(obj: Mapping[str, Any]) -> Kind | None:
    """The entry of an object's kind, whatever its version; None for what is no training job."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return next((kind for kind in KINDS if (kind.group, kind.kind) == (group, obj.get("kind"))), None)


def of_part(part: str) -> list[Kind]:
    """The kinds that a part of the chart brings."""
    return [kind for kind in KINDS if kind.part == part]


def with_gang() -> list[Kind]:
    """The kinds whose pods start together: all but Kubernetes' own."""
    return [kind for kind in KINDS if kind.part]


def rules(kinds: Iterable[Kind]) -> list[dict[str, list[str]]]:
    """Groups, versions and resources of kinds, joined by group, as rights and admission rules name them."""
    joined: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        joined.setdefault((kind.group, kind.version), []).append(kind.plural)
    return [
        {"apiGroups": [group], "apiVersions": [version], "resources": plurals}
        for (group, version), plurals in joined.items()
    ]


def rendered() -> list[dict[str, Any]]:
    """What the chart gets of the entries: enough for rights, waiting, cleaning up and stopping."""
    keys = ("kind", "group", "version", "plural", "part")
    return [{key: getattr(kind, key) for key in keys} for kind in KINDS]
