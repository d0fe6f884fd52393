"""MNIST with PyTorch DDP, by `python train.py` or by `torchrun train.py`.

trainyard train -n TEAM --dir examples/mnist-ddp --nodes 2 --gpus 1 -- torchrun train.py
"""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))
CUDA = torch.cuda.is_available()

dist.init_process_group("nccl" if CUDA else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if CUDA else torch.device("cpu")
digits = data.load(store.open_store(SOURCE), 6000)
x, y = (torch.from_numpy(part).to(device) for part in digits.shard(rank, world))

torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device))
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
for epoch in range(3):
    for at in torch.randperm(len(x), device=device).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[at]), y[at])
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)

if rank == 0:
    with torch.no_grad():
        guess = model.module(torch.from_numpy(digits.test_x).to(device)).argmax(1).cpu()
    accuracy = (guess == torch.from_numpy(digits.test_y)).float().mean().item()
    RESULTS.mkdir(exist_ok=True)
    torch.save(model.module.state_dict(), RESULTS / "model.pt")
    metrics = {"accuracy": accuracy, "device": str(device), "backend": dist.get_backend(), "world": world}
    (RESULTS / "metrics.json").write_text(json.dumps(metrics))
    print(f"accuracy {accuracy:.4f} on {device}", flush=True)
dist.destroy_process_group()
