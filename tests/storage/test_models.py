"""Models in a real MinIO: registered through the pod of a member's command, listed, brought into a server's pod."""

import io
import json
from pathlib import Path

import pytest
from minio import Minio
from played import Cluster

from model_server import contract as server_side
from servers import Server, env_of
from trainyard.kinds import TeamConfig
from trainyard.serving import shelf
from trainyard.training import transfer
from trainyard_agent.runs import models
from trainyard_agent.say import PlatformError

BUCKET = "runs"
TENSORS = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 784]}],
           "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}]}  # fmt: skip


def trained(folder: Path, content: bytes) -> Path:
    (folder / "variables").mkdir(parents=True)
    (folder / "model.pt").write_bytes(content)
    (folder / "variables" / "note.txt").write_text("beside it")
    return folder


def test_a_version_goes_to_the_store_and_from_there_into_a_pod(
    server: Server, cluster: Cluster, team_config: TeamConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained(tmp_path / "out", b"weights" * 1000)
    card = shelf.complete(folder, {"name": "digits", "framework": "pytorch", "file": "model.pt", **TENSORS})
    with transfer.open_store(cluster, team_config) as store:  # type: ignore[arg-type]
        found = shelf.ModelRegistry(shelf.ByPod(store), "vision")
        made = found.register(folder, card)
        assert found.find("digits").document()["uri"] == f"s3://runs/vision/models/digits/{made.version}"
        assert found.find("digits").digest == card["digest"] and found.listed()[0].changed > 0
    # A step of a pipeline sees the same by its own keys.
    direct = shelf.ModelRegistry(shelf.EnvironmentStore(server.admin), "vision")
    assert direct.find(f"digits@{made.version[:6]}").version == made.version
    assert direct.register(folder, card).version == made.version
    # What a server's pod gets is what its server takes.
    for name, value in env_of(server.root).items():
        monkeypatch.setenv(name, value)
    into = tmp_path / "model"
    models.bring(f"s3://{made.place}", into, "digits", made.version, made.digest)
    server_side.check(into, server_side.read(into))
    assert (into / "variables" / "note.txt").read_text() == "beside it"
    # Changed in the store afterwards, it is not served.
    bucket, _, prefix = made.place.partition("/")
    server.admin.put_object(bucket, f"{prefix}/model.pt", io.BytesIO(b"other"), 5)
    with pytest.raises(PlatformError, match="it was changed after it was registered, so serve another version"):
        models.bring(f"s3://{made.place}", tmp_path / "second", "digits", made.version, made.digest)
    with pytest.raises(PlatformError, match=r"has no model.json"):
        models.bring("s3://runs/vision/models/digits/none", tmp_path / "third", "digits", "none")


def test_what_is_no_card_is_passed_over(runs: Minio) -> None:
    for name, text in (
        ("broken/1/model.json", "{"),
        ("list/1/model.json", "[]"),
        ("good/1/model.json", '{"name": "good"}'),
    ):
        data = text.encode()
        runs.put_object(BUCKET, f"odd/models/{name}", io.BytesIO(data), len(data))
    found = models.cards(runs, BUCKET, "odd/models")
    assert {one["place"]: one["card"] for one in found} == {
        "broken/1": None, "good/1": {"name": "good"}, "list/1": None,
    }  # fmt: skip
    assert [card.title for card in shelf.ModelRegistry(shelf.EnvironmentStore(runs), "odd").listed()] == ["good@1"]
    assert json.dumps(found)
