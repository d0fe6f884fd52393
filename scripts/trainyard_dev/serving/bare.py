"""The bare library in a separate process: the same model and rows, in a loop. Prints the measurements."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def model(folder: Path, threads: int) -> Callable[[np.ndarray], Any]:
    """Loads the model; returns a function that calls the library once."""
    card = json.loads((folder / "model.json").read_text())
    file = str(folder / card["file"])
    if card["framework"] == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda rows: session.run(None, {"image": rows})
    if card["framework"] == "pytorch":
        import torch

        torch.set_num_threads(threads)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        module = torch.jit.load(file, map_location=device).eval()

        def infer(rows: np.ndarray) -> Any:
            with torch.inference_mode():
                return module(torch.from_numpy(rows).to(device)).cpu().numpy()

        return infer
    import joblib
    import threadpoolctl

    threadpoolctl.threadpool_limits(threads)
    found = joblib.load(file)
    return lambda rows: (found.predict(rows), found.predict_proba(rows))


def measure(folder: Path, rows: int, threads: int, seconds: float) -> dict[str, Any]:
    """Measures calls, seconds, latencies in ms, and seconds of CPU for each call."""
    call, given = model(folder, threads), np.zeros((rows, 64), np.float32)
    for _ in range(10):
        call(given)
    latencies, began, cpu = [], time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        one = time.perf_counter()
        call(given)
        latencies.append(time.perf_counter() - one)
    took, used = time.perf_counter() - began, time.process_time() - cpu
    latencies.sort()
    shares = {str(share): round(1000 * latencies[len(latencies) * share // 100], 4) for share in (50, 90, 99)}
    return {
        "answered": len(latencies),
        "failed": {},
        "seconds": took,
        "latency_ms": shares,
        "cpu_ms": 1000 * used / len(latencies),
    }


if __name__ == "__main__":
    said = sys.argv
    print(json.dumps(measure(Path(said[1]), int(said[2]), int(said[3]), float(said[4]))))
