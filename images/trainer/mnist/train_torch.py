"""PyTorch DDP on MNIST: `python3 -m mnist.train_torch --data … --out …`.

World from the environment (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, as the PyTorchJob operator and Volcano's
pytorch plugin set them); without WORLD_SIZE it trains alone. CUDA and NCCL with a GPU, else CPU and gloo.
In a local run of a pipeline on a machine without PyTorch, numpy does the same.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from importlib.util import find_spec

from mnist import data, options, perceptron, store
from mnist.result import Result
from mnist.world import world_of


def main(argv: Sequence[str]) -> None:
    """Trains, evaluates over all ranks, writes results; raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    args = options.with_start(options.parser("PyTorch DDP on MNIST", lr=0.002, epochs=2)).parse_args(argv)
    world = world_of(os.environ)
    if os.environ.get("TRAINYARD_LOCAL") and find_spec("torch") is None:
        from mnist import train_numpy

        print("PyTorch not found; training the same network with numpy (pip install torch to use PyTorch)", flush=True)
        return train_numpy.main(argv)
    source, target = store.open_store(args.data), store.open_store(args.out)

    import torch
    import torch.distributed as dist
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    from mnist import torch_model

    torch.set_num_threads(args.threads)
    device = torch_model.pick_device()
    backend = "nccl" if device.type == "cuda" else "gloo"
    name = backend if world.size > 1 else "none"
    result = Result("pytorch", name, world.role, world.index, world.rank, world.size, str(device), args.data)
    print(f"rank {world.rank} of {world.size}: {backend} on {device}, GPUs {result.visible_devices}", flush=True)

    everything = data.load(source, args.train_samples)
    x, y = everything.shard(world.rank, world.size)
    if world.size > 1:
        options.wait_for_name(world.master)
        dist.init_process_group(backend, timeout=timedelta(minutes=5))
    bare = torch_model.build(device)
    if args.start:
        torch_model.load(bare, perceptron.load(args.start))
        print(f"begins with the model of {args.start}", flush=True)
    model = DistributedDataParallel(bare) if world.size > 1 else bare
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    per_rank = max(1, args.batch_size // world.size)
    started = time.monotonic()
    total = torch.zeros(1, device=device)
    for epoch in range(args.epochs):
        total.zero_()
        for images, labels in torch_model.batches(x, y, per_rank, epoch, device):
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(labels)
        print(f"epoch {epoch + 1} of {args.epochs}: loss {float(total) / len(y):.4f}", flush=True)
    result.train_seconds = time.monotonic() - started

    right = torch_model.count_correct(bare, *everything.tests(world.rank, world.size), device)
    tally = torch.tensor([float(right), float(total)], device=device)
    if world.size > 1:
        dist.all_reduce(tally)
    result.samples, result.epochs = len(y), args.epochs
    result.accuracy = float(tally[0]) / len(everything.test_y)
    result.loss = float(tally[1]) / (len(y) * world.size)
    if world.rank == 0:
        result.checkpoint = store.put_checked(target, "checkpoint.pt", torch_model.checkpoint_bytes(bare, args.epochs))
        arrays = {name: value.detach().cpu().numpy() for name, value in bare.state_dict().items()}
        store.put_checked(target, perceptron.FILE, perceptron.to_bytes(perceptron.from_torch(arrays)))
    if world.size > 1:
        result.publish(target, dist.barrier)
        dist.destroy_process_group()
    else:
        result.publish(target)
    options.check_accuracy(result.accuracy, args.min_accuracy)


if __name__ == "__main__":
    sys.exit(options.run(main))
