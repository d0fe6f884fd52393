"""Data-parallel training in PyTorch, as small as it gets: all ranks together learn which of ten points is nearest.

trainyard train -n TEAM --nodes 2 --gpus 1
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CENTRES = torch.randn(10, 16, generator=torch.Generator().manual_seed(0))


def batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`size` points of 16 numbers around the centres, and which centre each belongs to."""
    labels = torch.randint(0, len(CENTRES), (size,))
    return CENTRES[labels] + 0.5 * torch.randn(size, CENTRES.shape[1]), labels


def main() -> None:
    """Trains on all ranks; rank 0 writes metrics.json and model.pt to the results."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--epochs", type=int, default=3)
    flags.add_argument("--lr", type=float, default=0.05)
    args = flags.parse_args()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else "cpu"
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    print(f"rank {rank} of {world} computes on {device}", flush=True)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10)).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for _ in range(30):
            x, y = (one.to(device) for one in batch(128))
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    if rank == 0:
        x, y = (one.to(device) for one in batch(2000))
        with torch.no_grad():
            accuracy = (model.module(x).argmax(1) == y).float().mean().item()
        results = Path(os.environ.get("TRAINYARD_RESULTS", "results"))
        results.mkdir(exist_ok=True)
        torch.save(model.module.state_dict(), results / "model.pt")
        (results / "metrics.json").write_text(json.dumps({"accuracy": accuracy, "world": world}))
        print(f"accuracy {accuracy:.4f} on {len(y)} points", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
