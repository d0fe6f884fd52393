"""MNIST with Lightning: `trainyard train -n TEAM --dir examples/mnist-lightning --nodes 2 --gpus 1 -- python train.py`.

The platform starts one process for each GPU, as torchrun would; Lightning is told how many there are.
"""

import json
import os
from pathlib import Path

import lightning
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))
WORLD, LOCAL = (int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))


class Digits(lightning.LightningModule):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        x, y = batch
        return nn.functional.cross_entropy(self.layers(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.002)


lightning.seed_everything(0)
digits = data.load(store.open_store(SOURCE), 6000)
train = TensorDataset(torch.from_numpy(digits.train_x), torch.from_numpy(digits.train_y))
model = Digits()
trainer = lightning.Trainer(
    max_epochs=3,
    devices=LOCAL,
    num_nodes=WORLD // LOCAL,
    strategy="ddp" if WORLD > 1 else "auto",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(model, DataLoader(train, batch_size=64, shuffle=True))

if trainer.is_global_zero:
    device = trainer.strategy.root_device
    model = model.to(device)
    with torch.no_grad():
        guess = model.layers(torch.from_numpy(digits.test_x).to(device)).argmax(1).cpu()
    accuracy = (guess == torch.from_numpy(digits.test_y)).float().mean().item()
    RESULTS.mkdir(exist_ok=True)
    torch.save(model.state_dict(), RESULTS / "model.pt")
    backend = dist.get_backend() if dist.is_initialized() else "none"
    metrics = {"accuracy": accuracy, "device": str(device), "backend": backend, "world": trainer.world_size}
    (RESULTS / "metrics.json").write_text(json.dumps(metrics))
    print(f"accuracy {accuracy:.4f} on {device}", flush=True)
