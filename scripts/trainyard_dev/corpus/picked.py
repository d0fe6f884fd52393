"""Upstream's examples that the end-to-end run applies and waits for: up to three of a kind, and why not the others."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from trainyard_dev.corpus.edit import drop_all

Object = dict[str, Any]
TRAINER_TORCH, TRAINER_TENSORFLOW = "trainer-torch", "trainer-tensorflow"
OPERATOR, VOLCANO, ARGO = "training-operator", "volcano", "argo"
SMALL = {
    "cpu": "300m",
    "memory": "768Mi",
}  # what a rank gets where the test cluster's machine has less than it requests


@dataclass(frozen=True)
class Picked:
    """One example.

    Args:
        kind: lower case, as in the id of its check.
        group: its module.
        files: below the module's folder of examples, all applied.
        name: of the object that is waited for; of a generated name its beginning.
        trainer: the trainer whose stand-in is used; "" for the image of pipelines.
        backend: expected of the ranks.
        world: number of ranks expected.
        gpus: number that it requests in all.
        by_hand: names of the edits that a member makes.
    """

    kind: str
    group: str
    files: tuple[str, ...]
    name: str
    trainer: str = ""
    backend: str = ""
    world: int = 0
    gpus: int = 0
    by_hand: tuple[str, ...] = ()


def _amounts(obj: Object) -> None:
    for replica in obj["spec"]["mpiReplicaSpecs"].values():
        for container in replica["template"]["spec"]["containers"]:
            container["resources"] = {"requests": dict(SMALL), "limits": {"memory": "2Gi"}}


def _without(key: str) -> Callable[[Object], None]:
    def edit(obj: Object) -> None:
        drop_all(obj, key)

    return edit


# Edits by hand: description and function.
EDITS: dict[str, tuple[str, Callable[[Object], None]]] = {
    "namespace": ("namespace `kubeflow` left out", _without("namespace")),
    "class": ("storage class left out, a placeholder", _without("storageClassName")),
    "amounts": ("two cores a worker made smaller: no node of the test cluster has them free", _amounts),
}

PICKED = (
    Picked("pytorchjob", OPERATOR, ("pytorch/mnist/v1/pytorch_job_mnist_gloo.yaml",), "pytorch-dist-mnist-gloo",
           TRAINER_TORCH, "gloo", 2, gpus=2),
    Picked("pytorchjob", OPERATOR, ("pytorch/smoke-dist/pytorch_job_sendrecv.yaml",), "pytorch-dist-basic-sendrecv",
           TRAINER_TORCH, "gloo", 4),
    Picked("pytorchjob", OPERATOR, ("pytorch/simple.yaml",), "pytorch-simple", TRAINER_TORCH, "gloo", 2,
           by_hand=("namespace",)),
    Picked("tfjob", OPERATOR, ("tensorflow/dist-mnist/tf_job_mnist.yaml",), "dist-mnist-for-e2e-test",
           TRAINER_TENSORFLOW, "parameter-server", 4),
    Picked("tfjob", OPERATOR, ("tensorflow/simple.yaml",), "tfjob-simple", TRAINER_TENSORFLOW,
           "multi-worker-mirrored", 2, by_hand=("namespace",)),
    Picked("tfjob", OPERATOR, ("tensorflow/distribution_strategy/pvc.yaml",
                               "tensorflow/distribution_strategy/multi_worker_tfjob.yaml"),
           "multi-worker", TRAINER_TENSORFLOW, "multi-worker-mirrored", 2, gpus=2, by_hand=("class",)),
    Picked("mpijob", OPERATOR, ("mpi/tensorflow-mnist.yaml",), "tensorflow-mnist", TRAINER_TORCH, "mpi4py", 2,
           by_hand=("amounts",)),
    Picked("xgboostjob", OPERATOR, ("xgboost/smoke-dist/xgboostjob_v1_rabit_test.yaml",), "xgboost-dist-test",
           "trainer-xgboost", "rabit", 3),
    Picked("xgboostjob", OPERATOR, ("xgboost/xgboost-dist/xgboostjob_v1_iris_train.yaml",),
           "xgboost-dist-iris-test-train", "trainer-xgboost", "rabit", 3),
    Picked("paddlejob", OPERATOR, ("paddlepaddle/simple-cpu.yaml",), "paddle-simple-cpu", "trainer-paddle", "gloo", 2,
           by_hand=("namespace",)),
    Picked("paddlejob", OPERATOR, ("paddlepaddle/simple-gpu.yaml",), "paddle-simple-gpu", "trainer-paddle", "gloo", 2,
           gpus=4, by_hand=("namespace",)),
    Picked("jaxjob", OPERATOR, ("jax/cpu-demo/demo.yaml",), "jaxjob-simple", "trainer-jax", "gloo", 2,
           by_hand=("namespace",)),
    Picked("jaxjob", OPERATOR, ("jax/jax-dist-spmd-mnist/jaxjob_dist_spmd_mnist_gloo.yaml",), "jaxjob-mnist",
           "trainer-jax", "gloo", 2, by_hand=("namespace",)),
    Picked("vcjob", VOLCANO, ("integrations/tensorflow/benchmark/tf-example.yaml",), "tensorflow-benchmark",
           TRAINER_TENSORFLOW, "parameter-server", 3),
    Picked("vcjob", VOLCANO, ("integrations/mxnet/train/train-mnist-cpu.yaml",), "mxnet-job", TRAINER_TORCH, "gloo", 5),
    Picked("vcjob", VOLCANO, ("integrations/tensorflow/dist-mnist/tf-dist-mnist-example.yaml",),
           "tensorflow-dist-mnist", TRAINER_TENSORFLOW, "parameter-server", 3),
    Picked("workflow", ARGO, ("hello-world.yaml",), "hello-world-"),
    Picked("workflow", ARGO, ("dag-diamond.yaml",), "dag-diamond-"),
    Picked("workflow", ARGO, ("artifact-passing.yaml",), "artifact-passing-"),
)  # fmt: skip

# Upstream's images by name, and the trainer whose stand-in takes their place; "": the image of pipelines.
IMAGES = {
    "alpine": "",
    "busybox": "",
    "ghcr.io/kubeflow/training-v1/jaxjob-dist-spmd-mnist": "trainer-jax",
    "ghcr.io/kubeflow/training-v1/jaxjob-simple": "trainer-jax",
    "ghcr.io/kubeflow/training-v1/pytorch-dist-mnist": TRAINER_TORCH,
    "ghcr.io/kubeflow/training-v1/pytorch-dist-sendrecv-test": TRAINER_TORCH,
    "ghcr.io/kubeflow/training-v1/tf-dist-mnist-test": TRAINER_TENSORFLOW,
    "ghcr.io/kubeflow/training-v1/tf-mnist-with-summaries": TRAINER_TENSORFLOW,
    "ghcr.io/kubeflow/training-v1/tf-multi-worker-strategy": TRAINER_TENSORFLOW,
    "ghcr.io/kubeflow/training-v1/xgboost-dist-iris": "trainer-xgboost",
    "ghcr.io/kubeflow/training-v1/xgboost-dist-rabit-test": "trainer-xgboost",
    "horovod/horovod": TRAINER_TORCH,
    "kubeflow/tf-dist-mnist-test": TRAINER_TENSORFLOW,
    "kubeflowkatib/pytorch-mnist": TRAINER_TORCH,
    "registry.baidubce.com/paddlepaddle/paddle": "trainer-paddle",
    "volcanosh/dist-mnist-tf-example": TRAINER_TENSORFLOW,
    "volcanosh/example-tf": TRAINER_TENSORFLOW,
    "volcanosh/mxnet-train-mnist-cpu": TRAINER_TORCH,
}


def kinds() -> list[str]:
    """Every kind with an example that is run."""
    return list(dict.fromkeys(one.kind for one in PICKED))


def of_kind(kind: str) -> list[Picked]:
    """The examples of a kind that are run."""
    return [one for one in PICKED if one.kind == kind]


def edited(objects: Iterable[Object], by_hand: Iterable[str]) -> list[Object]:
    """The objects after a member's edits; they are changed in place."""
    found = list(objects)
    for name in by_hand:
        for obj in found:
            EDITS[name][1](obj)
    return found
