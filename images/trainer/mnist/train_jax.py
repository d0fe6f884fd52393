"""JAX on MNIST, data-parallel: `python3 -m mnist.train_jax --data … --out …`.

Processes from the environment (COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES, PROCESS_ID, as the JAXJob operator
sets them); without NUM_PROCESSES it trains alone. Each batch is sharded over one device of each process, the weights
are on all of them: the compiler adds the sum of the gradients by itself, over gloo on CPUs and NCCL on GPUs.
Every process is a worker; process 0 also serves as coordinator and writes the metrics and the checkpoint.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnist import data, options, perceptron, store
from mnist.errors import TrainError
from mnist.result import Result
from mnist.world import rank_of

SEED = 20
PATIENCE_S = 300


@dataclass(frozen=True)
class Processes:
    """This process among its peers; process 0 listens at `coordinator` (host:port, empty when alone)."""

    rank: int
    size: int
    coordinator: str

    @property
    def host(self) -> str:
        return self.coordinator.rpartition(":")[0]


def processes_of(env: Mapping[str, str]) -> Processes:
    """Reads what the operator sets; raises TrainError when it is incomplete or contradicts itself."""
    rank, size = rank_of(env, "PROCESS_ID", "NUM_PROCESSES")
    if size == 1:
        return Processes(rank, size, "")
    host, port = env.get("COORDINATOR_ADDRESS", ""), env.get("COORDINATOR_PORT", "")
    if not (host and port):
        raise TrainError("COORDINATOR_ADDRESS and COORDINATOR_PORT must be set when NUM_PROCESSES is above 1")
    return Processes(rank, size, f"{host}:{port}")


class Group:
    """One device of each process in a row, and the arrays on them. Every call is made by every process."""

    def __init__(self, jax: Any, size: int) -> None:
        owners: dict[int, Any] = {}
        for device in jax.devices():
            owners.setdefault(device.process_index, device)
        mesh = jax.sharding.Mesh(np.array([owners[rank] for rank in range(size)]), ("data",))
        self.spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
        self.everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        self._sum = jax.jit(lambda rows: rows.sum(0), out_shardings=self.everywhere)
        self._join = jax.make_array_from_process_local_data

    def rows(self, mine: np.ndarray) -> Any:
        """An array with the rows of all processes, each holding its own."""
        return self._join(self.spread, mine)

    def copies(self, value: np.ndarray) -> Any:
        """An array that every process holds whole."""
        return self._join(self.everywhere, value)

    def total(self, *values: float) -> list[float]:
        """The sums over all processes; also a barrier."""
        return [float(value) for value in np.asarray(self._sum(self.rows(np.array([values], np.float32))))]


def make_step(jax: Any, group: Group, lr: float) -> Callable[..., Any]:
    """One step of Adam with PyTorch's defaults: (weights, means, squares, count, x, y) -> the first four, loss."""
    jnp = jax.numpy

    def loss_of(weights: list[Any], x: Any, y: Any) -> Any:
        hidden = jax.nn.relu(x @ weights[0].T + weights[1])
        chances = jax.nn.log_softmax(hidden @ weights[2].T + weights[3])
        return -jnp.take_along_axis(chances, y[:, None], 1).mean()

    def step(weights: Any, means: Any, squares: Any, count: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(weights, x, y)  # of the whole batch, across all processes
        count = count + 1
        means = jax.tree.map(lambda mean, grad: 0.9 * mean + 0.1 * grad, means, grads)
        squares = jax.tree.map(lambda square, grad: 0.999 * square + 0.001 * grad * grad, squares, grads)
        weights = jax.tree.map(
            lambda weight, mean, square: (
                weight - lr * (mean / (1 - 0.9**count)) / (jnp.sqrt(square / (1 - 0.999**count)) + 1e-8)
            ),
            weights,
            means,
            squares,
        )
        return weights, means, squares, count, loss

    return jax.jit(step, out_shardings=group.everywhere, donate_argnums=(0, 1, 2, 3))


def main(argv: Sequence[str]) -> None:
    """Trains, evaluates over all processes, writes results; raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    args = options.parser("JAX on MNIST", lr=0.002, epochs=2).parse_args(argv)
    place = processes_of(os.environ)
    os.environ.setdefault("NPROC", str(args.threads))  # XLA sizes its thread pools by it
    source, target = store.open_store(args.data), store.open_store(args.out)
    everything = data.load(source, args.train_samples)
    x, y = everything.shard(place.rank, place.size, "processes")

    import jax

    if place.size > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        options.wait_for_name(place.host)
        jax.distributed.initialize(place.coordinator, place.size, place.rank, initialization_timeout=PATIENCE_S)
    device = jax.default_backend()
    backend = ("gloo" if device == "cpu" else "nccl") if place.size > 1 else "none"
    result = Result("jax", backend, "worker", place.rank, place.rank, place.size, device, args.data)
    print(f"process {place.rank} of {place.size}: {backend} on {device}, GPUs {result.visible_devices}", flush=True)

    group = Group(jax, place.size)
    step = make_step(jax, group, args.lr)
    begin = perceptron.start(SEED).arrays()
    weights = [group.copies(value) for value in begin]
    means, squares = ([group.copies(np.zeros_like(value)) for value in begin] for _ in range(2))
    count = group.copies(np.zeros((), np.float32))
    per_process = max(1, args.batch_size // place.size)
    started, loss = time.monotonic(), 0.0
    for epoch in range(args.epochs):
        order, losses = np.random.default_rng(SEED + epoch).permutation(len(y)), []
        for at in range(0, len(y), per_process):  # a last short batch is kept
            pick = order[at : at + per_process]
            batch = group.rows(x[pick]), group.rows(y[pick].astype(np.int32))
            weights, means, squares, count, mean = step(weights, means, squares, count, *batch)
            losses.append((mean, len(pick)))
        loss = sum(float(mean) * size for mean, size in losses) / len(y)
        if place.rank == 0:
            print(f"epoch {epoch + 1} of {args.epochs}: loss {loss:.4f}", flush=True)
    result.train_seconds = time.monotonic() - started

    model = perceptron.Perceptron(*(np.asarray(value) for value in weights))
    right = perceptron.count_right(model.logits, *everything.tests(place.rank, place.size))
    result.samples, result.epochs, result.loss = len(y), args.epochs, loss
    result.accuracy = round(group.total(right)[0]) / len(everything.test_y)
    if place.rank == 0:
        result.checkpoint = store.put_checked(target, perceptron.FILE, perceptron.to_bytes(model))
    result.publish(target, lambda: group.total(0.0))
    if place.size > 1:
        jax.distributed.shutdown()
    options.check_accuracy(result.accuracy, args.min_accuracy)


if __name__ == "__main__":
    sys.exit(options.run(main))
