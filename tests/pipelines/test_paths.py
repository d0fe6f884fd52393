"""The step program with its real paths, /kfp and /s3, in a file system of its own: artifacts have S3 uris there, and
what kfp's executor derives from them leads to the same files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import compiler, dsl
from kfp.dsl import Dataset, Input, Model, Output

from trainyard.pipelines.ir import load
from trainyard_dev import tools

# A copy of the root folder, made of mounts, in which two more folders can be made.
ROOM = """
set -e
cd "$1"
for path in /*; do
  name=${path#/}
  case $name in kfp|s3|run) continue;; esac
  if [ -L "$path" ]; then cp -P "$path" "$name"
  elif [ -d "$path" ]; then mkdir "$name"; mount --rbind "$path" "$name"
  fi
done
mkdir kfp s3 run run/argo
mount -t tmpfs none kfp
mkdir kfp/s3
mount --bind kfp/s3 s3
cp -r "$2/kfp/." kfp
cp "$2/template" run/argo/template
shift 2
chroot . "$@"
cp -r kfp/. "$OLDPWD"
"""
TEMPLATE = {"archiveLocation": {"s3": {"bucket": "runs", "key": "vision/pipelines/run-1/run-1-train", "endpoint": "x"}}}
MADE = "s3://runs/vision/pipelines/run-1/run-1-train"


@dsl.component(base_image="image:1", install_kfp_package=False)
def train(data: Input[Dataset], model: Output[Model]) -> str:
    import os

    os.makedirs(model.path)
    with open(data.path) as taken, open(os.path.join(model.path, "weights"), "w") as made:
        made.write(taken.read() * 2)
    with open(model.path + ".txt", "w") as beside:
        beside.write("beside")
    return f"{data.uri} {data.path} {model.uri} {dsl.get_uri('more')}"


def test_uris_are_in_the_store_and_paths_are_files(tmp_path: Path) -> None:
    room, left = tmp_path / "room", tmp_path / "left"
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a mount namespace")
    taken = tmp_path / "given" / "kfp" / "in" / "data"
    for folder in (room, left, taken):
        folder.mkdir(parents=True)
    (tmp_path / "given" / "template").write_text(json.dumps(TEMPLATE))
    uri = "s3://runs/vision/pipelines/run-0/run-0-prepare/data/data"
    (taken / "meta.json").write_text(json.dumps({"uri": uri, "type": "system.Dataset"}))
    (taken / "data").write_text("ab")
    compiler.Compiler().compile(train, str(tmp_path / "train.yaml"))
    executor = load.file(tmp_path / "train.yaml").components["comp-train"].executor
    assert executor
    step = {
        "task": "train", "inputs": {"artifacts": {"data": {"type": "system.Dataset"}}},
        "outputs": {"parameters": {"Output": "STRING"}, "artifacts": {"model": {"type": "system.Model"}}},
    }  # fmt: skip
    program = [str(tools.binary("trainyard-step")), "run", "--", *executor.command, *executor.args]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", ROOM, "sh", room, tmp_path / "given", *program],
        cwd=left, capture_output=True, text=True, timeout=120,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin", "TRAINYARD_STEP": json.dumps(step),
             "HOME": str(left), "TMPDIR": str(left)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = (left / "outp" / "Output").read_text()
    assert said == f"{uri} /{uri.replace('s3:/', 's3')} {MADE}/model/data {MADE}/.task/more"
    assert (left / "out/model/data/weights").read_text() == "abab"
    assert (left / "out/model/data.txt").read_text() == "beside"
    assert json.loads((left / "out/model/meta.json").read_text())["uri"] == f"{MADE}/model/data"
    assert (left / "outp" / ".at-model").read_text() == f"{MADE}/model"
