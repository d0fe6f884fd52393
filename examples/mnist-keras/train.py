"""MNIST with Keras on one node: `trainyard train -n TEAM --dir examples/mnist-keras -- python train.py`."""

import json
import os
from pathlib import Path

import keras

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))

digits = data.load(store.open_store(SOURCE), 6000)
model = keras.Sequential(
    [keras.Input((784,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10, activation="softmax")]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(digits.train_x, digits.train_y, batch_size=64, epochs=3, verbose=2)
_, accuracy = model.evaluate(digits.test_x, digits.test_y, verbose=0)

RESULTS.mkdir(exist_ok=True)
model.save(RESULTS / "my_model.h5")
model.save(RESULTS / "my_model.keras")
again = keras.models.load_model(RESULTS / "my_model.keras")
_, same = again.evaluate(digits.test_x, digits.test_y, verbose=0)
assert abs(same - accuracy) < 1e-6, f"the saved model has {same}, not {accuracy}"

device = str(model.weights[0].value.device).rpartition("device:")[2]  # CPU:0 or GPU:0
metrics = {"accuracy": accuracy, "device": device, "backend": "none", "world": 1, "keras": keras.__version__}
(RESULTS / "metrics.json").write_text(json.dumps(metrics))
print(f"accuracy {accuracy:.4f} on {device}")
