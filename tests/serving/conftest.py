"""Real models and real servers of them; everything here is skipped where their environment isn't made."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import KEYS, write_keys

from model_server import contract
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.serving import environment, process
from trainyard_dev.serving.process import Server

Start = Callable[..., Server]


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """The Python that has the server's packages."""
    try:
        return environment.python()
    except TrainyardError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def made(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `sklearn` and `onnx`, and what the bare models say."""
    folder = tmp_path_factory.mktemp("models") / "made"
    env = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    subprocess.run([interpreter, "-m", "trainyard_dev.serving.models", folder], env=env, check=True)
    return folder


@pytest.fixture(scope="session")
def expected(made: Path) -> dict[str, Any]:
    """What the bare models say of `images`."""
    found: dict[str, Any] = json.loads((made / "expected.json").read_text())
    return found


@pytest.fixture
def launch(made: Path, tmp_path: Path) -> Iterator[Start]:
    """`launch(folder, MAX_BATCH="4")` starts a server and waits until it is ready; all end with the test."""
    running: list[Server] = []

    def go(folder: str | Path = "onnx", *, ready: bool = True, **env: str) -> Server:
        server = process.start(made / folder, tmp_path / f"log{len(running)}", **env)
        running.append(server)
        if ready:
            server.wait_ready()
        return server

    yield go
    for one in running:
        one.kill()


@pytest.fixture(scope="session")
def shared(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """A server of each framework that tests share, and `locked`: one that wants the first or the second key."""
    log = tmp_path_factory.mktemp("shared")
    found = {name: process.start(made / name, log / name) for name in ("sklearn", "onnx")}
    write_keys(log / "keys.json", *KEYS)
    found["locked"] = process.start(made / "onnx", log / "locked", KEYS_FILE=str(log / "keys.json"))
    try:
        for one in found.values():
            one.wait_ready()
        yield found
    finally:
        for one in found.values():
            one.kill()


@pytest.fixture
def changed(made: Path, tmp_path: Path) -> Callable[..., Path]:
    """`changed("onnx", outputs=[…])`: a copy of a model's folder with another card; None takes a field away."""

    def go(source: str, **fields: Any) -> Path:
        target = tmp_path / "changed"
        shutil.copytree(made / source, target)
        card = json.loads((target / contract.CARD).read_text()) | fields
        card = {key: value for key, value in card.items() if value is not None}
        (target / contract.CARD).write_text(json.dumps(card))
        return target

    return go
