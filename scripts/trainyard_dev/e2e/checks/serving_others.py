"""Models of other frameworks in service: each is made in a pod with its own library, and must give the same answer."""

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

from trainyard_dev.e2e import asking, runs
from trainyard_dev.e2e.context import CONTAINER_SECURITY, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.sites import served

ROW = [round(0.03 * at, 2) for at in range(8)]
NEAR = 1e-4
INPUT, OUTPUT = "row:FP32:-1,8", "scores:FP32:-1,3"
PORT = 8080
# Each prints its library's prediction for the row, and the model's file.
SKLEARN = r"""
import base64, io, json, joblib, numpy as np
from sklearn.linear_model import LogisticRegression
rows = np.random.default_rng(20).random((300, 8)).astype("float32")
model = LogisticRegression().fit(rows, (3 * rows[:, 0]).astype(int))
file = io.BytesIO(); joblib.dump(model, file)
said = model.predict_proba(np.array([ROW], "float32"))[0].tolist()
print(json.dumps([said, base64.b64encode(file.getvalue()).decode()]))
"""
TENSORFLOW = r"""
import base64, json, keras, numpy as np
keras.utils.set_random_seed(20)
model = keras.Sequential([keras.Input((8,), name="row"), keras.layers.Dense(3, activation="softmax", name="scores")])
model.save("/tmp/model.keras")
said = model(np.array([ROW], "float32")).numpy()[0].tolist()
print(json.dumps([said, base64.b64encode(open("/tmp/model.keras", "rb").read()).decode()]))
"""
MADE = {
    "sklearn": ("server-sklearn", SKLEARN, "model.joblib", f"{OUTPUT}:predict_proba"),
    "tensorflow": ("server-tensorflow", TENSORFLOW, "model.keras", OUTPUT),
}


def frameworks(context: Context, figures: dict[str, Any]) -> None:
    """One after the other: registered, served with one replica, queried by a pod of the team, stopped."""
    for framework in (*MADE, "onnx"):
        name = f"small-{framework}"
        said, file, data, output = _onnx() if framework == "onnx" else _made(context, framework)
        with tempfile.TemporaryDirectory(prefix="model-") as folder:
            (Path(folder) / file).write_bytes(data)
            words = ("--framework", framework, "--input", INPUT, "--output-tensor", output, "--file", file)
            runs.trainyard(context, "models", "register", folder, name, *words, timeout=180)
        try:
            runs.trainyard(context, "serve", name, "--replicas", "1", "--cpu", "100m", timeout=served.READY_S)
            got = asking.once(context, name, {"instances": [ROW]})
            require(len(got) == len(said) and all(abs(a - b) < NEAR for a, b in zip(got, said, strict=True)),
                    f"{framework}: served {got}, but its library returns {said}")  # fmt: skip
            figures[framework] = ", ".join(f"{one:.4f}" for one in got)
        finally:
            runs.trainyard(context, "serve", "stop", name, check=False)


def _made(context: Context, framework: str) -> tuple[list[float], str, bytes, str]:
    image, program, file, output = MADE[framework]
    pod = context.pod(f"make-{framework}", "true", image=context.image(image))
    pod["spec"]["containers"][0] |= {
        "command": ["python3", "-c", program.replace("ROW", json.dumps(ROW))],
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "TF_CPP_MIN_LOG_LEVEL", "value": "3"}],
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
        "securityContext": CONTAINER_SECURITY,
    }
    phase, log = context.run_pod(pod, timeout=240)
    require(phase == "Succeeded", f"the pod that makes a model of {framework} ended {phase}: {log[-300:]}")
    said, text = json.loads(log.splitlines()[-1])
    return said, file, base64.b64decode(text), output


def _onnx() -> tuple[list[float], str, bytes, str]:
    import numpy as np

    from trainyard_dev.serving import onnx_file

    numbers = np.random.default_rng(20)
    layers = [(numbers.random(shape, "f4"), numbers.random(shape[1], "f4")) for shape in ((8, 4), (4, 3))]
    found = np.array(ROW, "f4")
    for at, (weights, bias) in enumerate(layers):
        found = found @ weights + bias
        if at == 0:
            found = np.maximum(found, 0)
    return found.tolist(), "model.onnx", onnx_file.perceptron(layers, "row", "scores"), OUTPUT
