"""The line about the device on which a command computes: by the framework's build and the pod's devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainyard.kinds import registry
from trainyard.kinds.pods import device
from trainyard.kinds.spec import JOB, MPI, VOLCANO
from waiting import wait

FILES = {
    "torch/__init__.py": "raise SystemExit('nothing may be imported')",
    "torch/version.py": "__version__ = '2.6.0+debian'\ncuda: Optional[str] = None\n",
}
CUDA = FILES | {"torch/version.py": "__version__ = '2.9.1'\ncuda: Optional[str] = '12.8'\n"}
TENSORFLOW = {
    "tensorflow/__init__.py": "",
    "tensorflow/python/platform/build_info.py": "OrderedDict([('is_cuda_build', False)])",
    "tensorflow_cpu-2.21.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: 2.21.0\n",
}


def run(folder: Path, files: dict[str, str], *words: str, first: str = "torch", **env: str) -> tuple[int, str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    argv = [sys.executable, "-S", "-c", device(), first, *(words or ("echo", "ran"))]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), **env}
    done = subprocess.run(argv, capture_output=True, text=True, env=clean, cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("files", "env", "says"),
    [
        (FILES, {}, "computes on the CPU: torch 2.6.0+debian is a CPU build\n"),
        (FILES, {"NVIDIA_VISIBLE_DEVICES": "void"}, "computes on the CPU: torch 2.6.0+debian is a CPU build\n"),
        (FILES, {"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"}, "a CPU build, so its 2 GPUs compute nothing\n"),
        (CUDA, {}, "computes on the CPU: torch 2.9.1 is built for CUDA 12.8, and the pod has no GPU\n"),
        (CUDA, {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, "built for CUDA 12.8, and no driver answers for its 1 GPU\n"),
        (TENSORFLOW, {}, "computes on the CPU: tensorflow 2.21.0 is a CPU build\n"),
        ({}, {}, "no framework is installed; the pod has no GPU\n"),
    ],
    ids=["cpu", "no gpu granted", "idle gpus", "cuda without gpu", "cuda without driver", "tensorflow", "none"],
)
def test_what_is_said_before_the_command_runs(
    files: dict[str, str], env: dict[str, str], says: str, tmp_path: Path
) -> None:
    code, out = run(tmp_path, files, **env)
    first, _, rest = out.partition("\n")
    assert code == 0 and rest == "ran\n"
    assert first.startswith("trainyard: ") and f"{first}\n".endswith(says)


def test_every_kind_can_say_its_device() -> None:
    """By the first module that shows a kind, or by the frameworks that MPI and plain jobs drive."""
    for kind in registry.KINDS:
        own = kind.framework not in (MPI, VOLCANO, JOB)
        assert bool(kind.build) == own and (not own or f"'{kind.modules[0]}': (" in device()), kind.framework


def test_the_framework_of_the_job_is_asked_first(tmp_path: Path) -> None:
    _, out = run(tmp_path, FILES | TENSORFLOW, first="tensorflow")
    assert "tensorflow 2.21.0" in out


def test_of_the_ranks_that_mpi_starts_only_the_first_says_it(tmp_path: Path) -> None:
    assert run(tmp_path, FILES, OMPI_COMM_WORLD_RANK="1") == (0, "ran\n")


def test_the_commands_own_code_is_kept_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert run(tmp_path, FILES, "sh", "-c", "exit 7")[0] == 7
    code, out = run(tmp_path, FILES, "no-such-program")
    assert code == 127 and "error: no-such-program: No such file or directory" in out


def test_a_build_that_cannot_be_read_ends_nothing(tmp_path: Path) -> None:
    code, out = run(tmp_path, FILES, XDG="1", NVIDIA_VISIBLE_DEVICES="", first="torch")
    assert code == 0 and "ran" in out


def test_kubernetes_replaces_nothing_in_it() -> None:
    assert "$(" not in device()


@pytest.mark.parametrize(
    ("script", "code", "left"),
    [("exit 0", 0, "0"), ("exit 3", 3, "3"), ("kill -9 $$", -9, "-9"), ("kill -15 $$", -15, "-15")],
)
def test_a_parent_leaves_the_exit_code_where_it_is_asked_for(script: str, code: int, left: str, tmp_path: Path) -> None:
    file = tmp_path / "exit"
    assert run(tmp_path, FILES, "sh", "-c", script, TRAINYARD_EXIT=str(file))[0] == code
    assert file.read_text() == left


def test_a_parent_hands_signals_on(tmp_path: Path) -> None:
    file, ready = tmp_path / "exit", tmp_path / "ready"
    script = f"trap 'exit 7' TERM; touch {ready}; while :; do sleep 0.05; done"
    argv = [sys.executable, "-S", "-c", device(), "torch", "sh", "-c", script]
    process = subprocess.Popen(argv, env={**os.environ, "TRAINYARD_EXIT": str(file)})
    wait(ready.exists, "the script", 30)
    assert file.read_text() == ""
    process.terminate()
    assert process.wait(30) == 7 and file.read_text() == "7"


def test_of_ranks_only_the_first_leaves_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "exit"
    run(tmp_path, FILES, TRAINYARD_EXIT=str(file), OMPI_COMM_WORLD_RANK="1")
    assert not file.exists()


def test_a_command_that_is_not_there_leaves_127(tmp_path: Path) -> None:
    file = tmp_path / "exit"
    assert run(tmp_path, FILES, "no-such-command", TRAINYARD_EXIT=str(file))[0] == 127
    assert file.read_text() == "127"
