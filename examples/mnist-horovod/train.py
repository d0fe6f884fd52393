"""MNIST with Horovod for PyTorch.

trainyard train -n TEAM --dir examples/mnist-horovod --nodes 2 --gpus 1 -- python train.py
"""

import json
import os
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))

hvd.init()
device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
digits = data.load(store.open_store(SOURCE), 6000)
x, y = (torch.from_numpy(part).to(device) for part in digits.shard(hvd.rank(), hvd.size()))

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
adam = torch.optim.Adam(model.parameters(), lr=0.002)
optimizer = hvd.DistributedOptimizer(adam, named_parameters=model.named_parameters())
for epoch in range(3):
    for at in torch.randperm(len(x), device=device).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[at]), y[at])
        loss.backward()
        optimizer.step()
    if hvd.rank() == 0:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)

if hvd.rank() == 0:
    with torch.no_grad():
        guess = model(torch.from_numpy(digits.test_x).to(device)).argmax(1).cpu()
    accuracy = (guess == torch.from_numpy(digits.test_y)).float().mean().item()
    backend = "horovod-nccl" if hvd.nccl_built() and device.type == "cuda" else "horovod-mpi"
    RESULTS.mkdir(exist_ok=True)
    torch.save(model.state_dict(), RESULTS / "model.pt")
    metrics = {"accuracy": accuracy, "device": str(device), "backend": backend, "world": hvd.size()}
    (RESULTS / "metrics.json").write_text(json.dumps(metrics))
    print(f"accuracy {accuracy:.4f} on {device}", flush=True)
hvd.allreduce(torch.zeros(1), name="end")  # nobody leaves before the results are written
