"""Training that goes on when nodes come and go: every change restarts the ranks from the last snapshot.

    trainyard train --dir examples/elastic

It begins as soon as `minNodes` are free, takes further ones as GPUs come free, and gives them back when others claim
them. Behind torchrun a rank has one duty: to begin with the snapshot. Steps since then are lost, so save often enough.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BATCH, WIDTH, SEED = 256, 64, 20  # the batch of all ranks together: a step means the same for any number of them


def read(path: Path) -> dict[str, Any]:
    """What rank 0 saved last, on every rank; {} where there is nothing yet.

    Only rank 0's folder is certain to have it: another rank's pod may be new.
    """
    found: list[Any] = [dict(torch.load(path, weights_only=True)) if dist.get_rank() == 0 and path.exists() else {}]
    dist.broadcast_object_list(found, src=0)
    return dict(found[0])


def main() -> None:
    """Trains up to `--steps` over all starts together; rank 0 writes metrics.json to the results."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--steps", type=int, default=600, help="steps of the whole training")
    flags.add_argument("--every", type=int, default=20, help="steps from one snapshot to the next")
    flags.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes longer")
    args = flags.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda" if cuda else "cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    folder = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    snapshot, reached = folder / "snapshot.pt", folder / "reached.txt"

    torch.manual_seed(SEED)
    bare = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)).to(device)
    optimizer = torch.optim.Adam(bare.parameters(), lr=1e-3)
    saved = read(snapshot)
    if saved:
        bare.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    begun, starts = int(saved.get("step", 0)), list(saved.get("starts", []))
    model = DistributedDataParallel(bare)
    # Where the start before came to, which the snapshot can't know: what is between is lost.
    came = int(reached.read_text() or 0) if rank == 0 and reached.exists() else begun
    starts.append({"world": world, "after": begun, "lost": max(0, came - begun)})
    print(f"rank {rank} of {world} on {os.environ.get('NODE_NAME', 'this machine')}, after step {begun}", flush=True)

    teacher = torch.linspace(-1, 1, WIDTH, device=device) / 4
    loss = torch.zeros(1)
    for step in range(begun + 1, args.steps + 1):
        torch.manual_seed(SEED + step)
        x = torch.randn(BATCH, WIDTH, device=device)[rank::world]
        loss = ((model(x).squeeze(1) - x @ teacher) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            reached.write_text(str(step))
            if step % args.every == 0:
                part = snapshot.with_suffix(".part")
                state = {"model": bare.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save(state | {"starts": starts}, part)
                part.replace(snapshot)
                print(f"step {step}: loss {loss.item():.4f}, {world} ranks", flush=True)
        time.sleep(args.pause)
    if rank == 0:
        results = Path(os.environ.get("TRAINYARD_RESULTS", "results"))
        results.mkdir(parents=True, exist_ok=True)
        facts = {"backend": dist.get_backend(), "device": device.type, "every": args.every, "loss": loss.item()}
        facts |= {"starts": starts, "step": args.steps, "world": world}
        (results / "metrics.json").write_text(json.dumps(facts))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
