"""Writes the data that commands about runs read: numbers, numbers by step, and event files of TensorBoard."""

import argparse
import json
import os
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter


def main() -> None:
    """Write a loss that falls from 1 by the rate at each step."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--rate", type=float, required=True)
    rate = flags.parse_args().rate
    results = Path(os.environ["TRAINYARD_RESULTS"])
    loss = 1.0
    with SummaryWriter(str(results / "events")) as writer, open(results / "metrics.jsonl", "w") as lines:
        for step in range(5):
            loss *= 1 - rate
            writer.add_scalar("seeing/loss", loss, step)
            lines.write(json.dumps({"step": step, "loss": loss}) + "\n")
    (results / "metrics.json").write_text(json.dumps({"loss": loss}))


if __name__ == "__main__":
    main()
