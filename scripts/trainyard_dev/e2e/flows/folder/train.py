"""All ranks together learn a line: small enough for a check, and distributed for real."""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Trains; rank 0 writes results/metrics.json. The rank of --fail raises in the second epoch."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--epochs", type=int, default=2)
    flags.add_argument("--fail", type=int, default=-1)
    args = flags.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world} on {os.environ['NODE_NAME']}", flush=True)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.zeros(1)
    for epoch in range(args.epochs):
        if epoch and rank == args.fail:
            raise ValueError(f"loss is NaN on rank {rank}")
        for _ in range(50):
            x = torch.rand(64, 1)
            loss = ((model(x) - (2 * x + 1)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.5f}", flush=True)
    if rank == 0:
        with open(os.path.join(os.environ["TRAINYARD_RESULTS"], "metrics.json"), "w") as file:
            found = {"loss": loss.item(), "world": world, "device": str(loss.device), "backend": dist.get_backend()}
            json.dump(found, file)


if __name__ == "__main__":
    main()
