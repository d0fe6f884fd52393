"""Code comes into a pod, results go out, and a member's machine reaches both, on a real MinIO."""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from wire import archive, digest

from servers import Server, env_of
from trainyard.paths import ROOT
from trainyard_agent.runs import run_files
from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect, objects
from waiting import wait

BUCKET = "runs"


@pytest.fixture
def program(server: Server):  # type: ignore[no-untyped-def]
    """Runs `python3 -m trainyard_agent …` as the pod does."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "scripts"), "POD_NAME": "try-master-0"}
    env |= env_of(server.root)

    def start(*words: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "trainyard_agent", *words]
        return subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe)

    return start


@pytest.mark.parametrize("size", [0, 5, 12 << 20], ids=["nothing", "small", "in several parts"])
def test_what_is_put_is_got_byte_by_byte(runs, program, size: int) -> None:  # type: ignore[no-untyped-def]
    data, key = os.urandom(size), f"{BUCKET}/vision/put/{size}"
    sent = program("objects", "put", key, f"--size={size}", f"--sha256={digest(data)}")
    assert sent.communicate(data)[1] == b"{}\n" and sent.returncode == 0
    out, err = program("objects", "get", key).communicate()
    assert out == data
    assert json.loads(err) == {"size": size, "sha256": digest(data)}
    found = json.loads(program("objects", "stat", key).communicate()[1])
    assert found == {"found": {"size": size, "sha256": digest(data)}}


@pytest.mark.parametrize("size", [5, 12 << 20])
@pytest.mark.parametrize("short", [True, False], ids=["cut off", "damaged"])
def test_what_came_damaged_is_not_there(runs, program, size: int, short: bool) -> None:  # type: ignore[no-untyped-def]
    data, key = os.urandom(size), f"vision/bad/{size}-{short}"
    sent = program("objects", "put", f"{BUCKET}/{key}", f"--size={size}", f"--sha256={digest(data)}")
    _, err = sent.communicate(data[:-1] if short else b"x" + data[1:])
    assert sent.returncode == 1
    assert (b"1 bytes too early" if short else b"damaged in transit") in err and b"Traceback" not in err
    assert objects.stat(runs, BUCKET, key) is None


def test_a_folder_comes_as_an_archive(runs, program) -> None:  # type: ignore[no-untyped-def]
    for name in ("a.txt", "deep/b.txt"):
        objects.put(runs, BUCKET, f"vision/tree/{name}", io.BytesIO(b"hello"), 5, digest(b"hello"))
    out, err = program("objects", "tree", f"{BUCKET}/vision/tree").communicate()
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        assert tar.getnames() == ["a.txt", "deep/b.txt"]
    assert json.loads(err) == {"files": 2, "size": len(out), "sha256": digest(out)}
    listed = json.loads(program("objects", "list", f"{BUCKET}/vision/tree").communicate()[1])
    assert listed == {"keys": [["a.txt", 5], ["deep/b.txt", 5]]}


def test_what_is_not_there_is_said_in_a_sentence(runs, program) -> None:  # type: ignore[no-untyped-def]
    asked = program("objects", "get", f"{BUCKET}/vision/none")
    out, err = asked.communicate()
    assert (asked.returncode, out) == (1, b"")
    assert b"refuses s3://runs/vision/none: NoSuchKey" in err and b"Traceback" not in err


def test_a_store_that_is_away_is_said_in_a_sentence() -> None:
    gone = connect.client(connect.Access("http://127.0.0.1:1", "user", "password"), patient=False)
    with pytest.raises(
        PlatformError, match=r"^the object store does not answer for s3://runs/x: .*Connection refused$"
    ):
        objects.put(gone, BUCKET, "x", io.BytesIO(b"a"), 1, digest(b"a"))


def test_code_and_checkpoints_come_into_the_pod(runs, program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code = archive({"train.py": b"print(1)", "pkg/a.py": b""}, "w:gz")
    objects.put(runs, BUCKET, "vision/code/x.tar.gz", io.BytesIO(code), len(code), digest(code))
    objects.put(runs, BUCKET, "vision/jobs/one/ckpt/last.pt", io.BytesIO(b"w"), 1, digest(b"w"))
    words = [f"--into={tmp_path}/code", "--folder=results", "--folder=ckpt"]
    words += [f"--code={BUCKET}/vision/code/x.tar.gz", f"--sha256={digest(code)}"]
    words += [f"--restore={BUCKET}/vision/jobs/one/ckpt=ckpt"]
    ran = program("run-files", "fetch", *words)
    out, err = ran.communicate()
    assert (ran.returncode, err) == (0, b"")
    assert b"code: 2 files" in out and b"checkpoints: 1 files" in out
    assert (tmp_path / "code/train.py").read_bytes() == b"print(1)"
    assert (tmp_path / "code/ckpt/last.pt").read_bytes() == b"w"
    assert (tmp_path / "code/results").is_dir()


def test_code_that_is_not_what_was_sent_is_not_run(runs, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code = archive({"train.py": b"print(1)"}, "w:gz")
    objects.put(runs, BUCKET, "vision/code/y.tar.gz", io.BytesIO(code), len(code), digest(code))
    with pytest.raises(PlatformError, match="is not what was sent"):
        run_files.unpack(runs, BUCKET, "vision/code/y.tar.gz", "0" * 64, tmp_path)
    bad = archive({"../out.py": b""}, "w:gz")
    objects.put(runs, BUCKET, "vision/code/z.tar.gz", io.BytesIO(bad), len(bad), digest(bad))
    with pytest.raises(PlatformError, match="leads out of the folder"):
        run_files.unpack(runs, BUCKET, "vision/code/z.tar.gz", digest(bad), tmp_path)
    assert not (tmp_path.parent / "out.py").exists()


def test_results_are_kept_while_the_command_runs_and_at_its_end(runs, program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "results").mkdir()
    (tmp_path / "results/early.txt").write_text("early")
    os.utime(tmp_path / "results/early.txt", (1, 1))
    kept = program(
        "run-files", "upload", f"--from={tmp_path}", "--folder=results", f"--to={BUCKET}/vision/jobs/k", "--every=0.2"
    )
    wait(lambda: objects.stat(runs, BUCKET, "vision/jobs/k/results/early.txt"), "the early file")
    (tmp_path / "results/late.txt").write_text("late")
    kept.terminate()
    out, err = kept.communicate(timeout=20)
    assert (kept.returncode, err) == (0, b"")
    assert b"2 in all" in out
    index = io.BytesIO()
    objects.get(runs, BUCKET, f"vision/jobs/k/{run_files.INDEX}", index)
    found = json.loads(index.getvalue())
    assert found["complete"] and set(found["files"]) == {"results/early.txt", "results/late.txt"}
    assert found["files"]["results/late.txt"]["sha256"] == digest(b"late")


def test_other_ranks_keep_nothing(runs, program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "results").mkdir()
    (tmp_path / "results/x").write_text("x")
    to = f"--to={BUCKET}/vision/jobs/other"
    kept = program("run-files", "upload", f"--from={tmp_path}", "--folder=results", to, "--only=-worker-0")
    time.sleep(1.5)
    kept.terminate()
    assert kept.communicate(timeout=20)[1] == b""
    assert objects.stat(runs, BUCKET, f"vision/jobs/other/{run_files.INDEX}") is None
