"""The four gzipped idx files of MNIST (Fashion-MNIST has the same names) as numpy arrays."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass

import numpy as np

from mnist.errors import TrainError
from mnist.store import Store

TRAIN_IMAGES = "train-images-idx3-ubyte.gz"
TRAIN_LABELS = "train-labels-idx1-ubyte.gz"
TEST_IMAGES = "t10k-images-idx3-ubyte.gz"
TEST_LABELS = "t10k-labels-idx1-ubyte.gz"
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)
CLASSES = 10
PIXELS = 28 * 28
UNSIGNED_BYTE = 8


@dataclass(frozen=True)
class Dataset:
    """Images as float32 rows of 784 values from 0 to 1, labels as int64."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def shard(self, rank: int, world: int, of: str = "ranks") -> tuple[np.ndarray, np.ndarray]:
        """The training samples of one rank: every world-th one, the same count for all ranks, and one at least."""
        if not 0 <= rank < world:
            raise TrainError(f"rank {rank} is outside a world of {world}")
        count = len(self.train_y) // world
        if not count:
            what = f"{len(self.train_y)} samples can't be shared by {world} {of}"
            raise TrainError(what, hint="raise --train-samples")
        return self.train_x[rank::world][:count], self.train_y[rank::world][:count]

    def tests(self, rank: int, world: int) -> tuple[np.ndarray, np.ndarray]:
        """The test images that one rank evaluates, and their labels."""
        return self.test_x[rank::world], self.test_y[rank::world]


def parse_idx(blob: bytes, name: str = "idx") -> np.ndarray:
    """An idx file of unsigned bytes (gzipped or plain) as an array of its own shape."""
    if blob[:2] == b"\x1f\x8b":
        try:
            blob = gzip.decompress(blob)
        except (OSError, EOFError, zlib.error) as error:
            raise TrainError(f"the gzip data is damaged ({error})", where=name, hint="upload the file again") from None
    if len(blob) < 4 or blob[:2] != b"\0\0":
        raise TrainError("this is not an idx file", where=name, hint="use the original MNIST files")
    kind, axes = blob[2], blob[3]
    if kind != UNSIGNED_BYTE or not 1 <= axes <= 4 or len(blob) < 4 + 4 * axes:
        raise TrainError(f"unsupported idx header (type {kind}, {axes} axes)", where=name)
    shape = struct.unpack(f">{axes}I", blob[4 : 4 + 4 * axes])
    body = np.frombuffer(blob, dtype=np.uint8, offset=4 + 4 * axes)
    if body.size != int(np.prod(shape)):
        raise TrainError(f"{body.size} values where the header says {shape}", where=name, hint="upload the file again")
    return body.reshape(shape)


def load_pair(
    store: Store, images: str, labels: str, limit: int = 0, *, raw: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of one half of the data set, the first `limit` ones (0: all); `raw`: as the files have them."""
    pixels = parse_idx(store.get(images), images)
    classes = parse_idx(store.get(labels), labels)
    if pixels.ndim != 3 or pixels.shape[1] * pixels.shape[2] != PIXELS or classes.ndim != 1:
        raise TrainError(f"expected 28x28 images, found shape {pixels.shape}", where=images)
    if len(pixels) != len(classes):
        raise TrainError(f"{len(pixels)} images but {len(classes)} labels", where=images)
    if classes.size and int(classes.max()) >= CLASSES:
        raise TrainError(f"label {int(classes.max())} is above {CLASSES - 1}", where=labels)
    if limit > len(classes):
        raise TrainError(f"{limit} samples asked for, {len(classes)} there", where=images, hint="lower --train-samples")
    count = limit or len(classes)
    if raw:
        return pixels[:count], classes[:count]
    rows = pixels[:count].reshape(count, PIXELS).astype(np.float32) / np.float32(255)
    return rows, classes[:count].astype(np.int64)


def load(store: Store, train_samples: int = 0) -> Dataset:
    """The data set with the first `train_samples` training images (0: all) and all test images."""
    train_x, train_y = load_pair(store, TRAIN_IMAGES, TRAIN_LABELS, train_samples)
    test_x, test_y = load_pair(store, TEST_IMAGES, TEST_LABELS)
    return Dataset(train_x, train_y, test_x, test_y)
