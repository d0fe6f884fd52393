"""MNIST with a small vision transformer and Transformers' Trainer, from its configuration: nothing comes from the hub.

trainyard train -n TEAM --dir examples/mnist-transformers --nodes 2 --gpus 1 -- python train.py
"""

import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))
TESTED = 2000


class Digits(torch.utils.data.Dataset):
    """Images of one channel, as the model takes them."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = torch.from_numpy(x).reshape(-1, 1, 28, 28), torch.from_numpy(y)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.x[at], "labels": self.y[at]}


digits = data.load(store.open_store(SOURCE), 6000)
size = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
model = ViTForImageClassification(ViTConfig(image_size=28, patch_size=7, num_channels=1, num_labels=10, **size))
asked = TrainingArguments(
    output_dir="/tmp/trainer",
    num_train_epochs=3,
    per_device_train_batch_size=64,
    learning_rate=2e-3,
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=not torch.cuda.is_available(),
    seed=0,
)
trainer = Trainer(
    model=model,
    args=asked,
    train_dataset=Digits(digits.train_x, digits.train_y),
    eval_dataset=Digits(digits.test_x[:TESTED], digits.test_y[:TESTED]),
    compute_metrics=lambda seen: {"accuracy": float((seen.predictions.argmax(1) == seen.label_ids).mean())},
)
trainer.train()
accuracy = trainer.evaluate()["eval_accuracy"]
if trainer.is_world_process_zero():
    RESULTS.mkdir(exist_ok=True)
    trainer.save_model(str(RESULTS / "model"))
    backend = dist.get_backend() if dist.is_initialized() else "none"
    metrics = {"accuracy": accuracy, "device": str(asked.device), "backend": backend, "world": asked.world_size}
    (RESULTS / "metrics.json").write_text(json.dumps(metrics))
    print(f"accuracy {accuracy:.4f} on {asked.device}", flush=True)
