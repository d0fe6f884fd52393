"""PaddlePaddle on MNIST, data-parallel: `python3 -m mnist.train_paddle --data … --out …`.

The PaddleJob operator sets PADDLE_MASTER (host:port of worker 0) and PADDLE_NNODES, but no rank: the job's manifest
gives PADDLE_TRAINER_ID from the label that the operator puts on each pod. Paddle's launcher (`python3 -m
paddle.distributed.launch …`) finds ranks by itself and sets PADDLE_TRAINER_ID and PADDLE_TRAINERS_NUM for what it
starts; that works, too (it wants the path of this file, not -m). Without any of them it trains alone.
NCCL with a GPU and Paddle's GPU build, else CPU and gloo.
Every trainer is a worker; rank 0 writes the metrics and the checkpoint.
"""

from __future__ import annotations

import io
import os
import socket
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnist import data, options, perceptron, store
from mnist.errors import TrainError
from mnist.result import Result
from mnist.world import rank_of

SEED = 20


@dataclass(frozen=True)
class Trainers:
    """This trainer among its peers; rank 0 listens at `master` (host:port, empty when alone)."""

    rank: int
    size: int
    master: str

    @property
    def host(self) -> str:
        return self.master.rpartition(":")[0]

    def environment(self) -> dict[str, str]:
        """Variables that Paddle needs besides the operator's."""
        return {
            "PADDLE_TRAINER_ID": str(self.rank),
            "PADDLE_TRAINERS_NUM": str(self.size),
            "PADDLE_CURRENT_ENDPOINT": f"{socket.gethostname()}:{self.master.rpartition(':')[2]}",
        }


def trainers_of(env: Mapping[str, str]) -> Trainers:
    """Reads what the operator or Paddle's launcher sets; raises TrainError when it is incomplete."""
    count = "PADDLE_TRAINERS_NUM" if env.get("PADDLE_TRAINERS_NUM") else "PADDLE_NNODES"
    if env.get(count) not in (None, "", "1") and not env.get("PADDLE_TRAINER_ID"):
        raise TrainError(
            f"{count} is {env[count]}, but PADDLE_TRAINER_ID is not set",
            hint="take it from the pod's label training.kubeflow.org/replica-index (fieldRef), or start this with "
            "python3 -m paddle.distributed.launch",
        )
    rank, size = (0, 1) if env.get(count) == "1" else rank_of(env, "PADDLE_TRAINER_ID", count)
    master = env.get("PADDLE_MASTER", "")
    if size > 1 and not all(master.rpartition(":")[::2]):
        raise TrainError(f"PADDLE_MASTER must be host:port when {count} is above 1, not {master!r}")
    return Trainers(rank, size, master if size > 1 else "")


def batches(paddle: Any, x: np.ndarray, y: np.ndarray, size: int, epoch: int) -> Iterator[tuple[Any, Any, int]]:
    """Shuffled batches of one epoch; a last short one is kept, so all ranks take the same number of steps."""
    order = np.random.default_rng(SEED + epoch).permutation(len(y))
    for at in range(0, len(y), size):
        pick = order[at : at + size]
        yield paddle.to_tensor(x[pick]), paddle.to_tensor(y[pick]), len(pick)


def checkpoint_bytes(paddle: Any, net: Any, epochs: int) -> bytes:
    """The weights and the epoch count as `paddle.load` reads them."""
    buffer = io.BytesIO()
    paddle.save({"model": net.state_dict(), "epochs": epochs}, buffer)
    return buffer.getvalue()


def plain(net: Any) -> perceptron.Perceptron:
    """The weights without Paddle, which keeps matrices as (in, out)."""
    weight0, bias0, weight1, bias1 = (value.numpy() for value in net.parameters())
    return perceptron.Perceptron(weight0.T, bias0, weight1.T, bias1)


def main(argv: Sequence[str]) -> None:
    """Trains, evaluates over all ranks, writes results; raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    args = options.parser("PaddlePaddle on MNIST", lr=0.002, epochs=2).parse_args(argv)
    place = trainers_of(os.environ)
    source, target = store.open_store(args.data), store.open_store(args.out)
    everything = data.load(source, args.train_samples)
    x, y = everything.shard(place.rank, place.size)

    warnings.filterwarnings("ignore", message="No ccache found")  # nothing is compiled here
    import paddle
    import paddle.distributed as dist

    gpu = paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() > 0
    backend, device = ("nccl", "gpu:0") if gpu else ("gloo", "cpu")
    paddle.set_device(device)
    name = backend if place.size > 1 else "none"
    result = Result("paddle", name, "worker", place.rank, place.rank, place.size, device, args.data)
    print(f"rank {place.rank} of {place.size}: {name} on {device}, GPUs {result.visible_devices}", flush=True)
    if place.size > 1:
        for variable, value in place.environment().items():
            os.environ.setdefault(variable, value)
        os.environ["PADDLE_DISTRI_BACKEND"] = backend  # without it a CPU build uses groups of an older kind
        if gpu:
            os.environ.setdefault("FLAGS_selected_gpus", "0")
        options.wait_for_name(place.host)
        dist.init_parallel_env()
    paddle.seed(SEED)
    net = paddle.nn.Sequential(
        paddle.nn.Linear(data.PIXELS, perceptron.HIDDEN),
        paddle.nn.ReLU(),
        paddle.nn.Linear(perceptron.HIDDEN, data.CLASSES),
    )
    model = paddle.DataParallel(net) if place.size > 1 else net
    optimizer = paddle.optimizer.Adam(args.lr, parameters=model.parameters())
    per_rank = max(1, args.batch_size // place.size)
    started, total = time.monotonic(), 0.0
    for epoch in range(args.epochs):
        total = 0.0
        for images, labels, count in batches(paddle, x, y, per_rank, epoch):
            loss = paddle.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            total += float(loss) * count
        if place.rank == 0:
            print(f"epoch {epoch + 1} of {args.epochs}: loss {total / len(y):.4f}", flush=True)
    result.train_seconds = time.monotonic() - started

    weights = plain(net)
    right = perceptron.count_right(weights.logits, *everything.tests(place.rank, place.size))
    tally = paddle.to_tensor([right, total], dtype="float32")
    if place.size > 1:
        dist.all_reduce(tally)
    result.samples, result.epochs = len(y), args.epochs
    result.accuracy = round(float(tally[0])) / len(everything.test_y)
    result.loss = float(tally[1]) / (len(y) * place.size)
    if place.rank == 0:
        blob = checkpoint_bytes(paddle, net, args.epochs)
        result.checkpoint = store.put_checked(target, "checkpoint.pdparams", blob)
        store.put_checked(target, perceptron.FILE, perceptron.to_bytes(weights))
    if place.size > 1:
        result.publish(target, dist.barrier)
        dist.destroy_process_group()
    else:
        result.publish(target)
    options.check_accuracy(result.accuracy, args.min_accuracy)


if __name__ == "__main__":
    sys.exit(options.run(main))
