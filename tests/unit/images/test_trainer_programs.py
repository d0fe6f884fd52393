"""Programs that pip would install with packages of the trainer images: torchrun, accelerate."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.paths import ROOT
from trainyard_dev.versions import load

IMAGES = ROOT / "images"
PROGRAMS = {
    "trainer-torch-cuda/torchrun": "torch.distributed.run",
    "trainer-transformers/accelerate": "accelerate.commands.accelerate_cli",
}


@pytest.mark.parametrize("path", PROGRAMS)
def test_a_program_runs_its_package_s_module_with_all_words(path: str, program: Callable[[str, str], Path]) -> None:
    program("python3", 'printf "%s|" "$@"')
    words = ["--nproc-per-node=2", "train.py", "a b", ""]
    done = subprocess.run([IMAGES / path, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "|".join(["-m", PROGRAMS[path], *words, ""])


@pytest.mark.parametrize("image", [path.name for path in IMAGES.glob("trainer-*")])
def test_an_image_whose_wheels_bring_programs_has_each_as_a_file_of_its_own(image: str) -> None:
    """Wheels are laid out without their bin/: what jobs call by name must be put onto PATH."""
    text = (ROOT / load().images[image].dir / "Containerfile").read_text()
    wheels = (IMAGES / image / "requirements.txt").read_text()
    for package, name in (("torch==", "torchrun"), ("accelerate==", "accelerate")):
        if f"\n{package}" in wheels:
            assert f"{name} /usr/local/bin/{name}\n" in text, name
