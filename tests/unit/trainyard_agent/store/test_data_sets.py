"""Files of a data set in a folder of a volume: many at once, whatever their names."""

import hashlib
import io
import tarfile
from pathlib import Path

from trainyard_agent.store import data_sets


def stream(files: dict[str, bytes]) -> io.BytesIO:
    """A tar stream as a member's machine sends it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), 1
            member.pax_headers = {data_sets.SHA256: hashlib.sha256(data).hexdigest()}
            tar.addfile(member, io.BytesIO(data))
    return io.BytesIO(out.getvalue())


def test_long_names_that_differ_at_their_end_are_written_side_by_side(tmp_path: Path) -> None:
    files = {f"{'x' * 240}-{at:03}.npy": str(at).encode() * 20_000 for at in range(16)}
    for _ in range(5):
        assert data_sets.fill(data_sets.Folder(tmp_path), stream(files)) == 16
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_the_longest_name_of_a_file_system_is_taken(tmp_path: Path) -> None:
    files = {"\N{LATIN SMALL LETTER E WITH ACUTE}" * 127: b"1"}
    assert data_sets.fill(data_sets.Folder(tmp_path), stream(files)) == 1
    assert [path.name for path in tmp_path.iterdir()] == list(files)
