"""idx parsing and sharding of the MNIST files."""

import gzip
import struct
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed, as the trainers need it")

from mnist import data  # noqa: E402
from mnist.errors import TrainError  # noqa: E402
from mnist.store import open_store  # noqa: E402


def idx(array: np.ndarray) -> bytes:
    """An array as a gzipped idx file."""
    head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def write_set(folder: Path, train: int = 12, test: int = 5) -> Path:
    """A tiny data set whose image n is filled with the value n and labelled n mod 10."""
    for images, labels, count in (
        (data.TRAIN_IMAGES, data.TRAIN_LABELS, train),
        (data.TEST_IMAGES, data.TEST_LABELS, test),
    ):
        numbers = np.arange(count)
        (folder / images).write_bytes(idx(np.broadcast_to(numbers[:, None, None], (count, 28, 28))))
        (folder / labels).write_bytes(idx(numbers % 10))
    return folder


def test_parse_idx_keeps_shape_and_values() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(data.parse_idx(idx(array)), array)
    assert np.array_equal(data.parse_idx(gzip.decompress(idx(array))), array), "plain files are read too"


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "not an idx file"),
        (b"<html>not found</html>", "not an idx file"),
        (b"\x1f\x8bdamaged", "gzip data is damaged"),
        (idx(np.zeros(100))[:-12], "gzip data is damaged"),
        (struct.pack(">HBBI", 0, 13, 1, 3) + b"\0\0\0", "unsupported idx header"),
        (struct.pack(">HBBI", 0, 8, 1, 4) + b"\0\0\0", "3 values where the header says"),
    ],
)
def test_parse_idx_refuses_what_is_not_whole(blob: bytes, message: str) -> None:
    with pytest.raises(TrainError, match=message):
        data.parse_idx(blob, "some-file")


def test_load_scales_limits_and_flattens(tmp_path: Path) -> None:
    loaded = data.load(open_store(str(write_set(tmp_path))), train_samples=8)
    assert loaded.train_x.shape == (8, 784)
    assert loaded.train_x.dtype == np.float32
    assert loaded.train_y.dtype == np.int64
    assert loaded.train_x[7, 0] == pytest.approx(7 / 255)
    assert loaded.test_x.shape == (5, 784)


def test_load_refuses_more_samples_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match="13 samples asked for, 12 there"):
        data.load(open_store(str(write_set(tmp_path))), train_samples=13)


def test_load_refuses_images_without_their_labels(tmp_path: Path) -> None:
    write_set(tmp_path)
    (tmp_path / data.TRAIN_LABELS).write_bytes(idx(np.zeros(11)))
    with pytest.raises(TrainError, match="12 images but 11 labels"):
        data.load(open_store(str(tmp_path)))


def test_load_names_the_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match=r"train-images-idx3-ubyte\.gz: no such file"):
        data.load(open_store(str(tmp_path)))


def test_shards_are_disjoint_equal_and_cover(tmp_path: Path) -> None:
    loaded = data.load(open_store(str(write_set(tmp_path))))
    seen = [loaded.shard(rank, 4)[0][:, 0] * 255 for rank in range(4)]
    assert {len(part) for part in seen} == {3}
    assert sorted(np.concatenate(seen).round().astype(int)) == list(range(12))
    assert len(loaded.shard(0, 5)[1]) == 2, "what can't be shared evenly is left out"
    with pytest.raises(TrainError, match="outside a world of 4"):
        loaded.shard(4, 4)
