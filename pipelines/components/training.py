"""Training jobs as steps of kfp pipelines, one function for each kind.

Args:
    command: the program and its words, the same on every node.
    name: what the job's name begins with.
    arguments: further words, as in a shell; put values of other steps here: f"--lr={lr}".
    image: what the command runs in; empty takes the platform's.
    nodes: pods of the gang; all start together or none does.
    gpus: GPUs of each node.
    processes: ranks on each node; 0 means one for each GPU, at least one.
    parameter_servers: further pods without GPU that hold the weights.
    queue: of the team; empty takes the run's.
    priority: class; empty takes the run's.
    pool: nodes to run on; empty takes the default one for this many GPUs.
    cpu, memory, shared_memory: of each node.
    env: variables: a text, or {"secret": …, "key": …}.
    mounts: volumes: {"claim": …, "path": …, "readOnly": …}.
    results: folder that the command writes to and the platform keeps; empty where the command writes to {out}.
    checkpoints: folder that is kept while the job runs, and is restored when a node restarts.
    retries: how often a rank may fail and restart.
    deadline: the longest the job may take: 90m, 12h, 2d.
    settings: what {name} in words of the command stands for; kept in the metadata of `model`, too.
    data: what to train on.

Each returns the job's name as `Output`, beside the artifacts `model` and `metrics`.
"""

from typing import Optional

from kfp import dsl

from components.images import PIPELINE
from components.store import stored


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def jax_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Trains with JAX: ranks get COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID.

    An empty `image` takes the platform's trainer-jax; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("jax", locals())


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def mpi_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    processes: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Trains with MPI: a launcher runs the command by mpirun on all nodes.

    An empty `image` takes the platform's trainer-horovod; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("mpi", locals())


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def paddle_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Trains with PaddlePaddle: ranks get PADDLE_MASTER and PADDLE_NNODES for paddle.distributed.launch.

    An empty `image` takes the platform's trainer-paddle; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("paddle", locals())


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def pytorch_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    processes: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Trains with PyTorch: ranks get RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

    An empty `image` takes the platform's trainer-torch; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("pytorch", locals())


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def tf_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    parameter_servers: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Trains with TensorFlow: a chief, workers and parameter servers get TF_CONFIG.

    An empty `image` takes the platform's trainer-tensorflow; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("tensorflow", locals())


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def volcano_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    processes: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Runs a gang of any kind: pods get the same variables as PyTorch's, and a name each.

    An empty `image` takes the platform's trainer-torch; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("volcano", locals())


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def xgboost_job(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """Trains with XGBoost: ranks get RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; rank 0 starts the tracker.

    An empty `image` takes the platform's trainer-xgboost; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("xgboost", locals())
