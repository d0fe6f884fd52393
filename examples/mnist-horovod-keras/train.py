"""MNIST with Horovod for Keras.

trainyard train -n TEAM --dir examples/mnist-horovod-keras --nodes 2 -- python train.py

tf.keras is Keras 2 in this image: Horovod wraps its optimizers, and not those of Keras 3.
"""

import json
import os
from pathlib import Path

import horovod.tensorflow.keras as hvd
import tensorflow as tf

from mnist import data, store  # of the platform's images: reads the bucket, or a folder

SOURCE = os.environ.get("DATA", "s3://datasets/shared/mnist")
RESULTS = Path(os.environ.get("TRAINYARD_RESULTS", "results"))

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
tf.random.set_seed(hvd.rank())
digits = data.load(store.open_store(SOURCE), 6000)
x, y = digits.shard(hvd.rank(), hvd.size())

layers = tf.keras.layers
model = tf.keras.Sequential([layers.Dense(128, activation="relu", input_shape=(784,)), layers.Dense(10)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.Adam(0.001 * hvd.size()))
model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"], jit_compile=False)
begin = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
model.fit(x, y, batch_size=64, epochs=3, callbacks=begin, verbose=2 if hvd.rank() == 0 else 0)

if hvd.rank() == 0:
    _, accuracy = model.evaluate(digits.test_x, digits.test_y, verbose=0)
    device = str(model.weights[0].device).rpartition("device:")[2]
    RESULTS.mkdir(exist_ok=True)
    model.save(RESULTS / "my_model.h5")
    metrics = {"accuracy": accuracy, "device": device, "backend": "horovod-mpi", "world": hvd.size()}
    (RESULTS / "metrics.json").write_text(json.dumps(metrics))
    print(f"accuracy {accuracy:.4f} on {device}", flush=True)
hvd.allreduce(tf.zeros([1]), name="end")  # nobody leaves before the results are written
