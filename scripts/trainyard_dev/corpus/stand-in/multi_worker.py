"""TensorFlow's workers without parameter servers: Keras under the strategy that averages their gradients."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Sequence

STRATEGY = "multi-worker-mirrored"


def main(argv: Sequence[str]) -> None:
    """Trains as the worker that TF_CONFIG names; the first one writes the result."""
    data, options, store = (importlib.import_module(f"mnist.{name}") for name in ("data", "options", "store"))
    options.early_threads(argv)
    args = options.parser("Keras on several workers", lr=0.05, epochs=2).parse_args(argv)
    config = json.loads(os.environ["TF_CONFIG"])
    workers, index = config["cluster"]["worker"], int(config["task"]["index"])
    for address in workers:
        options.wait_for_name(address.rpartition(":")[0])
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the strategy is of Keras 2
    tf = importlib.import_module("tensorflow")
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    everything = data.load(store.open_store(args.data), args.train_samples)
    pairs = tf.data.Dataset.from_tensor_slices((everything.train_x, everything.train_y)).batch(args.batch_size)
    with strategy.scope():
        layers = [tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(data.CLASSES)]
        net = tf.keras.Sequential([tf.keras.Input((data.PIXELS,)), *layers])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        net.compile(tf.keras.optimizers.legacy.SGD(args.lr), loss, metrics=["accuracy"])
    started = time.monotonic()
    history = net.fit(pairs, epochs=args.epochs, verbose=2).history
    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    made = importlib.import_module("mnist.result").Result
    result = made("tensorflow", STRATEGY, "worker", index, index, len(workers), device, args.data)
    result.train_seconds, result.epochs, result.samples = time.monotonic() - started, args.epochs, args.train_samples
    result.loss, result.accuracy = history["loss"][-1], history["accuracy"][-1]
    if index == 0:
        result.write_metrics(store.open_store(args.out))


if __name__ == "__main__":
    code = importlib.import_module("mnist.options").run(main)
    sys.stdout.flush()
    os._exit(code)  # the servers of the strategy would keep the process alive
