"""A chart from another host: accepted only with the pinned checksum, and fetched once."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.chart import fetched


def archive(name: str) -> bytes:
    """A packed chart of this name."""
    packed, text = io.BytesIO(), b"name: csi\n"
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        entry = tarfile.TarInfo(f"{name}/Chart.yaml")
        entry.size = len(text)
        made.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


@pytest.fixture
def source(cache: Path, tmp_path: Path) -> Path:
    """Where the archive lies."""
    file = tmp_path / "csi.tgz"
    file.write_bytes(archive("csi"))
    return file


def spec(source: Path) -> dict[str, str]:
    return {"url": source.as_uri(), "sha256": hashlib.sha256(source.read_bytes()).hexdigest()}


def test_the_pinned_archive_is_unpacked_and_fetched_once(source: Path, tmp_path: Path) -> None:
    pinned = spec(source)
    assert fetched.fetch("csi", pinned, tmp_path / "one")
    source.unlink()
    assert fetched.fetch("csi", pinned, tmp_path / "two")
    assert (tmp_path / "two/csi/Chart.yaml").read_text() == "name: csi\n"


def test_another_archive_of_the_same_version_is_refused(source: Path, tmp_path: Path) -> None:
    pinned = spec(source)
    source.write_bytes(archive("csi/other"))
    with pytest.raises(TrainyardError, match=r"differs from the pinned archive\. check what changed") as refused:
        fetched.fetch("csi", pinned, tmp_path / "charts")
    assert spec(source)["sha256"] in refused.value.hint
    assert not (tmp_path / "charts").exists()


def test_an_archive_without_the_chart_is_refused(source: Path, tmp_path: Path) -> None:
    source.write_bytes(archive("other"))
    with pytest.raises(TrainyardError, match=r"lacks csi/Chart\.yaml"):
        fetched.fetch("csi", spec(source), tmp_path / "charts")


def test_a_host_that_does_not_answer_leaves_the_chart_out(source: Path, tmp_path: Path) -> None:
    pinned = spec(source)
    source.unlink()
    assert not fetched.fetch("csi", pinned, tmp_path / "charts")
