"""Boosted trees by XGBoost on MNIST, data-parallel: `python3 -m mnist.train_xgboost --data … --out …`.

World from the environment (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, as the XGBoostJob operator sets them); without
WORLD_SIZE it trains alone. The master also runs the tracker at MASTER_PORT, where all ranks meet; they sum their
histograms over their own connections. WORKER_ADDRS and WORKER_PORT, meant for LightGBM, are not needed.
A boosting round goes over all samples once: --epochs counts rounds, --lr is how much of each round's trees counts
(eta), --batch-size means nothing. Trees see a part of the pixels and of the samples, in few bins: fast on one core.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from mnist import data, options, store
from mnist.errors import TrainError
from mnist.result import Result
from mnist.world import World, world_of

SEED = 20
PATIENCE_S = 300
RETRIES = 17  # a worker whose tracker isn't up yet tries again, the nth time 2n seconds later: 306 in all


def parameters(lr: float, threads: int, device: str) -> dict[str, Any]:
    """Parameters for the trees."""
    return {
        "objective": "multi:softprob",
        "num_class": data.CLASSES,
        "eval_metric": "mlogloss",
        "tree_method": "hist",
        "device": device,
        "eta": lr,
        "max_depth": 5,
        "max_bin": 16,
        "subsample": 0.5,
        "colsample_bytree": 0.3,
        "seed": SEED,
        "nthread": threads,
    }


@contextmanager
def together(world: World, port: int) -> Iterator[None]:
    """Joins all ranks during the block; the master runs the tracker to which they connect."""
    if world.size == 1:
        yield
        return
    from xgboost import collective
    from xgboost.core import XGBoostError
    from xgboost.tracker import RabitTracker

    options.wait_for_name(world.master)
    address = str(socket.getaddrinfo(world.master, port, type=socket.SOCK_STREAM)[0][4][0])
    tracker = None
    with ExitStack() as group:
        try:
            if world.rank == 0:
                tracker = RabitTracker(world.size, address, port, sortby="task", timeout=PATIENCE_S)
                tracker.start()
            group.enter_context(
                collective.CommunicatorContext(
                    dmlc_communicator="rabit",
                    dmlc_tracker_uri=address,
                    dmlc_tracker_port=port,
                    dmlc_task_id=f"{world.rank:06d}",
                    dmlc_retry=RETRIES,
                    dmlc_timeout=PATIENCE_S,
                )
            )
        except XGBoostError as error:
            reasons = [line.rpartition("]: ")[2] for line in str(error).splitlines() if "]: " in line]
            raise TrainError(
                f"the {world.size} ranks did not meet ({reasons[-1] if reasons else error})",
                where=f"{world.master}:{port}",
                hint="read the other ranks' logs; the master needs this port for itself",
            ) from None
        yield
    if tracker is not None:
        tracker.wait_for(PATIENCE_S)


def total(world: World, *values: float) -> list[float]:
    """The sums over all ranks; also a barrier."""
    if world.size == 1:
        return list(values)
    from xgboost import collective

    return [float(value) for value in collective.allreduce(np.array(values, np.float64), collective.Op.SUM)]


def main(argv: Sequence[str]) -> None:
    """Trains, evaluates over all ranks, writes results; raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    args = options.parser("XGBoost on MNIST", lr=0.5, epochs=10).parse_args(argv)
    world = world_of(os.environ)
    source, target = store.open_store(args.data), store.open_store(args.out)

    import xgboost

    backend = "rabit" if world.size > 1 else "none"
    result = Result("xgboost", backend, world.role, world.index, world.rank, world.size, "cpu", args.data)
    if xgboost.build_info().get("USE_CUDA") and result.device_nodes:
        result.device = "cuda"
    print(f"rank {world.rank} of {world.size}: {backend} on {result.device}, GPUs {result.visible_devices}", flush=True)
    everything = data.load(source, args.train_samples)
    x, y = everything.shard(world.rank, world.size)

    with together(world, int(os.environ.get("MASTER_PORT") or 0)):
        settings = parameters(args.lr, args.threads, result.device)
        started = time.monotonic()
        matrix = xgboost.QuantileDMatrix(x, y, max_bin=settings["max_bin"], nthread=args.threads)
        losses: dict[str, dict[str, list[float]]] = {}
        booster = xgboost.train(
            settings, matrix, args.epochs, evals=[(matrix, "train")], evals_result=losses, verbose_eval=world.rank == 0
        )
        result.train_seconds = time.monotonic() - started
        images, labels = everything.tests(world.rank, world.size)
        right = float((booster.inplace_predict(images).argmax(1) == labels).sum())
        result.samples, result.epochs = len(y), args.epochs
        result.accuracy = total(world, right)[0] / len(everything.test_y)
        result.loss = float(losses["train"]["mlogloss"][-1])  # of all ranks' samples
        if world.rank == 0:
            blob = bytes(booster.save_raw("ubj"))
            result.checkpoint = store.put_checked(target, "checkpoint.ubj", blob)
        result.publish(target, lambda: total(world, 0.0))
    options.check_accuracy(result.accuracy, args.min_accuracy)


if __name__ == "__main__":
    sys.exit(options.run(main))
