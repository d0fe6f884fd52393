"""The cluster's object store as accessed from this machine."""

import base64
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trainyard.errors import TrainyardError
from trainyard.kube.kubectl import Kubectl
from trainyard_dev.e2e import store

KEYS = {"endpoint": "https://store:9000", "access-key": "a", "secret-key": "s", "region": "r"}


@pytest.fixture
def port() -> int:
    """An unused port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_silence_in_the_block_is_reported_in_a_sentence(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    secret: dict[str, Any] = {"data": {key: base64.b64encode(text.encode()).decode() for key, text in KEYS.items()}}

    @contextmanager
    def forward(*args: object) -> Iterator[int]:
        yield port

    monkeypatch.setattr(store, "client", partial(store.client, patient=False))
    kubectl = cast(Kubectl, SimpleNamespace(find=lambda *args: secret, forward=forward))
    with pytest.raises(TrainyardError) as error, store.connect(kubectl, "trainyard-system") as s3:
        s3.read("runs", "a")
    assert "the object store does not answer: " in str(error.value)
    assert f"https://127.0.0.1:{port}" in str(error.value)
