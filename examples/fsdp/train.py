"""A model of which each rank holds a part: its weights, gradients and the optimizer's state are sharded (FSDP).

    trainyard train --dir examples/fsdp
    trainyard train --dir examples/fsdp --resume RUN     # goes on behind that run's last snapshot

Snapshots are whole, written by rank 0, and so fit any number of ranks. Without GPUs the ranks are joined by gloo.
"""

import argparse
import json
import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    StateDictType,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

WIDTH, LAYERS, SEED = 128, 4, 20
SNAPSHOT = "snapshot.pt"


class Block(nn.Module):
    """A residual layer. FSDP gathers one of these at a time, computes, and lets go what other ranks hold."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the shape that x has."""
        return x + self.layers(x)


def read(folder: str) -> dict[str, Any]:
    """The last snapshot, on rank 0 alone; {} where there is none."""
    path = os.path.join(folder, SNAPSHOT)
    if dist.get_rank() or not os.path.exists(path):
        return {}
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def sharded(snapshot: dict[str, Any], device: torch.device) -> FullyShardedDataParallel:
    """The model over all ranks, with the weights that rank 0 has."""
    torch.manual_seed(SEED)
    model = nn.Sequential(*(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, 1))
    if snapshot:
        model.load_state_dict(snapshot["model"])
    for value in model.to(device).parameters():
        dist.broadcast(value.data, src=0)
    blocks = ModuleWrapPolicy({Block})
    return FullyShardedDataParallel(model, auto_wrap_policy=blocks, device_id=device, use_orig_params=True)


def whole(model: FullyShardedDataParallel) -> Any:
    """Within it, states are the whole model's, on rank 0."""
    cuda = torch.cuda.is_available()
    return FullyShardedDataParallel.state_dict_type(
        model,
        StateDictType.FULL_STATE_DICT,
        FullStateDictConfig(rank0_only=True, offload_to_cpu=cuda),
        FullOptimStateDictConfig(rank0_only=True, offload_to_cpu=cuda),
    )


def save(model: FullyShardedDataParallel, optimizer: torch.optim.Optimizer, folder: str, step: int) -> None:
    """All ranks give their parts, rank 0 writes the whole; the snapshot before is replaced at once."""
    with whole(model):
        state = {"model": model.state_dict(), "optimizer": model.optim_state_dict(model, optimizer), "step": step}
    if dist.get_rank() == 0:
        part = os.path.join(folder, f".{SNAPSHOT}.part")
        torch.save(state, part)
        os.replace(part, os.path.join(folder, SNAPSHOT))


def resume(model: FullyShardedDataParallel, optimizer: torch.optim.Optimizer, snapshot: dict[str, Any]) -> int:
    """Hands each rank its part of the optimizer's state; returns the step of rank 0's snapshot, 0 without one."""
    found = [snapshot.get("step", 0)]
    dist.broadcast_object_list(found, src=0)
    if found[0]:
        with whole(model):
            mine = model.optim_state_dict_to_load(model, optimizer, snapshot.get("optimizer"))
        optimizer.load_state_dict(mine)
    return int(found[0])


def main() -> None:
    """Trains `--steps` steps more; rank 0 writes metrics.json to the results."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--steps", type=int, default=60, help="steps of this run")
    flags.add_argument("--every", type=int, default=20, help="steps from one snapshot to the next")
    args = flags.parse_args()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    folder = os.environ.get("TRAINYARD_CHECKPOINTS", "checkpoints")
    os.makedirs(folder, exist_ok=True)
    snapshot = read(folder)
    model = sharded(snapshot, device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begun = resume(model, optimizer, snapshot)
    held = sum(value.numel() for value in model.parameters())
    counted = torch.tensor(held, device=device)
    dist.all_reduce(counted)
    of = int(counted)
    print(f"rank {rank} of {world} holds {held} of {of} weights on {device.type}, after step {begun}", flush=True)

    teacher = torch.linspace(-1, 1, WIDTH, device=device) / 8
    torch.manual_seed(SEED + world * begun + rank)  # every rank and every step has data of its own
    losses, started = [], time.monotonic()
    for step in range(begun + 1, begun + args.steps + 1):
        x = torch.randn(64, WIDTH, device=device)
        loss = ((model(x).squeeze(1) - x @ teacher) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step % args.every == 0:
            save(model, optimizer, folder, step)
            if rank == 0:
                print(f"step {step}: loss {losses[-1]:.4f}", flush=True)
    if rank == 0:
        results = os.environ.get("TRAINYARD_RESULTS", "results")
        os.makedirs(results, exist_ok=True)
        facts = {"backend": dist.get_backend(), "begun": begun, "device": device.type, "world": world}
        facts |= {"first_loss": losses[0], "loss": losses[-1], "step": begun + args.steps, "held": held, "weights": of}
        facts["seconds"] = round(time.monotonic() - started, 1)
        with open(os.path.join(results, "metrics.json"), "w") as file:
            json.dump(facts, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
