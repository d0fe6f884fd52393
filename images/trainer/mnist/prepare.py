"""A pipeline's first step: the data set for its training, checked and cut to size."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

from mnist import data, store


def prepare(source: str, folder: str, samples: int, skip: int = 0) -> dict[str, object]:
    """Writes `samples` training images behind the first `skip`, and all test images; returns what `folder` holds.

    The same images make the same bytes, so that later steps find their results in the cache.
    """
    origin = store.open_store(source)
    pixels, classes = data.load_pair(origin, data.TRAIN_IMAGES, data.TRAIN_LABELS, skip + samples, raw=True)
    found = pixels[skip:], classes[skip:]
    tests = data.load_pair(origin, data.TEST_IMAGES, data.TEST_LABELS, raw=True)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, array in zip(data.FILES, (*found, *tests), strict=True):
        (target / name).write_bytes(idx_bytes(array))
    print(f"{len(found[1])} images to train with and {len(tests[1])} to test with, from {source}", flush=True)
    facts: dict[str, object] = {"source": source, "train": len(found[1]), "test": len(tests[1])}
    return facts | {"classes": data.CLASSES} | ({"skip": skip} if skip else {})


def idx_bytes(array: np.ndarray) -> bytes:
    """An array of bytes as a gzipped idx file."""
    head = struct.pack(f">HBB{array.ndim}I", 0, data.UNSIGNED_BYTE, array.ndim, *array.shape)
    return gzip.compress(head + np.ascontiguousarray(array, dtype=np.uint8).tobytes(), compresslevel=1, mtime=0)
