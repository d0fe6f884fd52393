"""TensorFlow with parameter servers on MNIST: `python3 -m mnist.train_tensorflow --data … --out …`.

TF_CONFIG (as the TFJob operator sets it) names a chief, workers and parameter servers. The chief coordinates: variables
are on the parameter servers, workers compute gradients, updates are asynchronous. Without a chief, worker 0 is the one
whose end ends the job. TensorFlow's own servers never return; here workers and parameter servers
end by themselves, with exit code 0, once the chief has gone.
Without TF_CONFIG it trains alone. The chief reads the data set and hands it to the workers with their input pipeline.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnist import data, options, store
from mnist.errors import TrainError
from mnist.result import Result

CHIEF_PATIENCE_S = 300.0
CHIEF_GONE_S = 4.0


@dataclass(frozen=True)
class Task:
    """This process in the cluster of TF_CONFIG, which has a chief; an empty cluster means it trains alone."""

    cluster: dict[str, list[str]]
    role: str
    index: int

    @property
    def alone(self) -> bool:
        return not self.cluster

    @property
    def world(self) -> int:
        return sum(len(hosts) for hosts in self.cluster.values()) or 1

    def resolver(self) -> Any:
        """This task for TensorFlow; TF_CONFIG may lack the chief."""
        import tensorflow as tf

        cluster = tf.train.ClusterSpec(self.cluster)
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            cluster, task_type=self.role, task_id=self.index, rpc_layer="grpc"
        )

    @property
    def rank(self) -> int:
        """Position among all tasks: the chief, then parameter servers, then workers."""
        before = {"chief": [], "ps": ["chief"], "worker": ["chief", "ps"]}[self.role]
        return sum(len(self.cluster.get(role, [])) for role in before) + self.index


def task_of(env: Mapping[str, str]) -> Task:
    """Reads TF_CONFIG; a `master` replica counts as the chief, and where there is none worker 0 does.

    Raises:
        TrainError: the cluster can't work.
    """
    text = env.get("TF_CONFIG", "")
    if not text:
        return Task({}, "chief", 0)
    try:
        config = json.loads(text)
        cluster = {str(role): [str(host) for host in hosts] for role, hosts in config["cluster"].items()}
        role, index = str(config["task"]["type"]), int(config["task"]["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TrainError("TF_CONFIG is not a cluster description", hint="let the TFJob operator set it") from None
    if "master" in cluster:
        cluster["chief"] = cluster.pop("master")
    role = "chief" if role == "master" else role
    if not cluster.get("chief") and len(cluster.get("worker") or ()) > 1:
        first, *cluster["worker"] = cluster["worker"]
        cluster["chief"] = [first]
        if role == "worker":
            role, index = ("worker", index - 1) if index else ("chief", 0)
    for needed in ("worker", "ps", "chief"):
        if not cluster.get(needed):
            hint = "declare Worker and PS replicas, and a Chief or a second Worker"
            raise TrainError(f"TF_CONFIG has no {needed}", hint=hint)
    if role not in ("chief", "worker", "ps") or not 0 <= index < len(cluster[role]):
        raise TrainError(f"TF_CONFIG names the unknown task {role} {index}")
    return Task(cluster, role, index)


def reachable(address: str) -> bool:
    """Whether a server accepts TCP connections at host:port."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return True
    except OSError:
        return False


def wait_for_end(
    chief: str,
    is_up: Callable[[str], bool] = reachable,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Returns once the chief was up and has been away for CHIEF_GONE_S; raises if it never came."""
    begun, last_seen = clock(), None
    while True:
        now = clock()
        if is_up(chief):
            last_seen = now
        elif last_seen is None and now - begun > CHIEF_PATIENCE_S:
            raise TrainError(f"the chief {chief} did not come up within {CHIEF_PATIENCE_S:.0f} s")
        elif last_seen is not None and now - last_seen > CHIEF_GONE_S:
            return
        sleep(1.0)


def serve(task: Task, result: Result, target: store.Store) -> None:
    """Runs this worker's or parameter server's TensorFlow server until the chief has gone."""
    import tensorflow as tf

    settings = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    server = tf.distribute.Server(
        tf.train.ClusterSpec(task.cluster),
        job_name=task.role,
        task_index=task.index,
        protocol="grpc",
        config=settings,
        start=True,
    )
    result.write_rank(target)  # at once: a clean-up policy may remove this pod as soon as the chief is done
    print(f"{task.role} {task.index} serves at {server.target}, GPUs {result.visible_devices}", flush=True)
    wait_for_end(task.cluster["chief"][0])
    print(f"{task.role} {task.index}: the chief is done", flush=True)


def build(tf: Any) -> list[Any]:
    """The weights of a two-layer perceptron."""
    pick = tf.random.Generator.from_seed(20)
    first = pick.normal((data.PIXELS, 128)) * (2.0 / data.PIXELS) ** 0.5
    second = pick.normal((128, data.CLASSES)) * (2.0 / 128) ** 0.5
    starts = [first, tf.zeros((128,)), second, tf.zeros((data.CLASSES,))]
    return [tf.Variable(value, name=f"weights{at}") for at, value in enumerate(starts)]


def train(tf: Any, args: Any, everything: data.Dataset, task: Task) -> tuple[list[Any], float, str]:
    """Trains; returns the weights as arrays, the last epoch's mean loss and the name of the strategy."""

    def logits(weights: list[Any], images: Any) -> Any:
        return tf.matmul(tf.nn.relu(tf.matmul(images, weights[0]) + weights[1]), weights[2]) + weights[3]

    def step(weights: list[Any], images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits(weights, images))
            loss = tf.reduce_mean(losses)
        for weight, grad in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(args.lr * grad)
        return loss

    def batches() -> Any:
        pairs = tf.data.Dataset.from_tensor_slices((everything.train_x, everything.train_y))
        options_ = tf.data.Options()
        options_.threading.private_threadpool_size = 1
        return pairs.shuffle(10000).repeat().batch(args.batch_size, drop_remainder=True).with_options(options_)

    steps = max(1, len(everything.train_y) // args.batch_size)
    if task.alone:
        weights, feed, loss = build(tf), iter(batches()), 0.0
        graph = tf.function(lambda images, labels: step(weights, images, labels))
        for epoch in range(args.epochs):
            loss = sum(float(graph(*next(feed))) for _ in range(steps)) / steps
            print(f"epoch {epoch + 1} of {args.epochs}: loss {loss:.4f}", flush=True)
        return [weight.numpy() for weight in weights], loss, "none"

    strategy = tf.distribute.ParameterServerStrategy(task.resolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = build(tf)

    @tf.function
    def worker_step(feed: Any) -> Any:
        images, labels = next(feed)
        return step(weights, images, labels)

    feed = iter(coordinator.create_per_worker_dataset(batches))
    loss = 0.0
    for epoch in range(args.epochs):
        losses = [coordinator.schedule(worker_step, args=(feed,)) for _ in range(steps)]
        coordinator.join()
        loss = sum(float(value.fetch()) for value in losses) / steps
        print(f"epoch {epoch + 1} of {args.epochs}: loss {loss:.4f}", flush=True)
    return [weight.numpy() for weight in weights], loss, "parameter-server"


def accuracy_of(weights: list[Any], everything: data.Dataset) -> float:
    """Share of the test images labelled right."""
    import numpy as np

    hidden = np.maximum(everything.test_x @ weights[0] + weights[1], 0)
    return float(((hidden @ weights[2] + weights[3]).argmax(1) == everything.test_y).mean())


def weights_bytes(weights: list[Any], epochs: int) -> bytes:
    """The weights as an .npz file."""
    import io

    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, epochs=epochs, **{f"weights{at}": value for at, value in enumerate(weights)})
    return buffer.getvalue()


def main(argv: Sequence[str]) -> None:
    """Plays the role that TF_CONFIG gives; the chief raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # workers may come up later than the chief
    args = options.parser("TensorFlow parameter servers on MNIST", lr=0.15, epochs=2).parse_args(argv)
    task = task_of(os.environ)
    target = store.open_store(args.out)
    everything = data.load(store.open_store(args.data), args.train_samples) if task.role == "chief" else None

    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    backend = "none" if task.alone else "parameter-server"
    result = Result("tensorflow", backend, task.role, task.index, task.rank, task.world, device, args.data)
    if everything is None:
        serve(task, result, target)
        return
    if len(everything.train_y) < args.batch_size:
        raise TrainError("fewer samples than one batch", hint="raise --train-samples or lower --batch-size")
    for address in [*task.cluster.get("ps", []), *task.cluster.get("worker", [])]:
        options.wait_for_name(address.rpartition(":")[0])
    print(f"chief of {task.world} tasks, GPUs {result.visible_devices}", flush=True)
    started = time.monotonic()
    weights, result.loss, result.backend = train(tf, args, everything, task)
    result.train_seconds = time.monotonic() - started
    result.samples, result.epochs = len(everything.train_y), args.epochs
    result.accuracy = accuracy_of(weights, everything)
    result.checkpoint = store.put_checked(target, "checkpoint.npz", weights_bytes(weights, args.epochs))
    result.write_rank(target)
    print(f"test accuracy {result.accuracy:.4f}; metrics in {result.write_metrics(target)}", flush=True)
    options.check_accuracy(result.accuracy, args.min_accuracy)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    code = options.run(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # TensorFlow's server and coordinator threads would keep the process alive
