"""MNIST with Accelerate.

trainyard train -n TEAM --dir examples/mnist-accelerate --nodes 2 --gpus 1 -- python train.py
"""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))

accelerator = Accelerator(cpu=not torch.cuda.is_available())
torch.manual_seed(0)
digits = data.load(store.open_store(SOURCE), 6000)
train = TensorDataset(torch.from_numpy(digits.train_x), torch.from_numpy(digits.train_y))
model: nn.Module = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(train, batch_size=64, shuffle=True))
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

accelerator.wait_for_everyone()
if accelerator.is_main_process:
    device, bare = accelerator.device, accelerator.unwrap_model(model)
    with torch.no_grad():
        guess = bare(torch.from_numpy(digits.test_x).to(device)).argmax(1).cpu()
    accuracy = (guess == torch.from_numpy(digits.test_y)).float().mean().item()
    RESULTS.mkdir(exist_ok=True)
    torch.save(bare.state_dict(), RESULTS / "model.pt")
    backend = dist.get_backend() if dist.is_initialized() else "none"
    metrics = {"accuracy": accuracy, "device": str(device), "backend": backend, "world": accelerator.num_processes}
    (RESULTS / "metrics.json").write_text(json.dumps(metrics))
    print(f"accuracy {accuracy:.4f} on {device}", flush=True)
accelerator.end_training()
