"""A server isn't ready before it is warm, serves nothing but what its card says, and ends without losing a request."""

import http.client
import json
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asking import ask, refused, series, tensor

from model_server import contract
from trainyard_dev.serving import environment
from trainyard_dev.serving.process import Server
from waiting import wait

MODEL = "/v2/models/digits"
IN_FLIGHT = 'trainyard_model_requests_in_flight{model="digits",version="1"}'
Start = Callable[..., Server]
Changed = Callable[..., Path]

# A pickle whose loading takes its time, or that waits whenever it is asked.
SLOW = """
import pickle, sys, joblib
class Late:
    def __reduce__(self):
        code = "__import__('time').sleep({load}) or __import__('joblib').load({inner!r})"
        return (eval, (code.format(load=sys.argv[2], inner=sys.argv[1] + '/inner.joblib'),))
pickle.dump(Late(), open(sys.argv[1] + '/model.joblib', 'wb'))
"""


def slow(folder: Path, interpreter: Path, load_s: float) -> None:
    """Makes a scikit-learn model's file load for so long."""
    (folder / "model.joblib").rename(folder / "inner.joblib")
    subprocess.run([interpreter, "-c", SLOW, folder, str(load_s)], check=True)
    sign(folder)


def sign(folder: Path) -> None:
    """The card has the digest of what the model's file is now."""
    said = json.loads((folder / contract.CARD).read_text())
    said["digest"] = contract.digest_of(folder / "model.joblib")
    (folder / contract.CARD).write_text(json.dumps(said))


def test_it_is_not_ready_before_its_model_is_warm(launch: Start, changed: Changed, interpreter: Path) -> None:
    folder = changed("sklearn")
    slow(folder, interpreter, 4)
    server = launch(folder, ready=False)
    wait(lambda: server.admin_page("/readyz")[0], "an answer", 60)
    assert server.admin_page("/readyz") == (503, "not ready: loads its model\n")
    assert server.admin_page("/healthz")[0] == 200
    assert ask(server, "GET", "/v2/health/live").status == 200
    assert ask(server, "GET", "/v2/health/ready").status == 503
    said = ask(server, "POST", "/predict", {"instances": [[0.0] * 64]})
    assert (said.status, said.headers["retry-after"]) == (503, "1")
    assert said.json["error"] == "digits: the model is not loaded yet. retry in a second."
    server.wait_ready()
    assert series(server)['trainyard_model_batch_rows_count{model="digits",version="1"}'] == 0
    assert ask(server, "POST", "/predict", {"instances": [[0.0] * 64]}).status == 200


def test_it_ends_while_it_loads(launch: Start, changed: Changed, interpreter: Path) -> None:
    folder = changed("sklearn")
    slow(folder, interpreter, 60)
    server = launch(folder, ready=False)
    wait(lambda: server.admin_page("/readyz")[0], "an answer", 60)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 30


LABEL = {"name": "label", "datatype": "INT32", "shape": [-1]}


@pytest.mark.parametrize(
    ("source", "fields", "words"),
    [
        ("onnx", {"digest": "sha256:" + "0" * 64}, "changed after registration"),
        ("onnx", {"file": "other.onnx"}, "not found, although the card names it"),
        ("onnx", {"framework": "sklearn"}, "can't be loaded by sklearn"),
        ("sklearn", {"framework": "onnx"}, "can't be loaded by onnx"),
        ("onnx", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 64]}]}, "the inputs are image, but the"),
        ("onnx", {"inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 63]}]}, "fails with zeros for image"),
        ("onnx", {"inputs": [{"name": "image", "datatype": "FP64", "shape": [-1, 64]}]}, "fails with zeros for image"),
        ("onnx", {"outputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 10]}]}, "the outputs are logits, but"),
        ("sklearn", {"outputs": [LABEL]}, "outputs: label: is INT64, but the card says INT32"),
        ("sklearn", {"outputs": [LABEL | {"datatype": "INT64", "shape": [-1, 1]}]}, "has the shape [1] for 1 rows"),
        ("sklearn", {"outputs": [LABEL | {"method": "transform"}]}, "transform, which LogisticRegression lacks"),
        ("sklearn", {"outputs": [LABEL | {"method": "__class__"}]}, "needs the method __class__"),
    ],
)
def test_what_is_not_as_its_card_says_is_never_served(
    launch: Start, changed: Changed, source: str, fields: dict[str, Any], words: str
) -> None:
    assert "Traceback" not in refused(launch, changed(source, **fields), words).output()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"MODEL_NAME": "other"}, "is digits, but MODEL_NAME says other. mount the intended model."),
        ({"MODEL_VERSION": "2"}, "is 1, but MODEL_VERSION says 2. mount the intended model."),
        ({"MAX_BATCH": "0"}, "error: MAX_BATCH: is '0'. write a whole number from 1 to 1e+06."),
        ({"BATCH_WAIT_MS": "soon"}, "error: BATCH_WAIT_MS: is 'soon'. write a number from 0 to 10000."),
        ({"KEYS_FILE": "/nowhere/keys"}, "/nowhere/keys: can't be read"),
    ],
)
def test_wrong_settings_end_it(launch: Start, env: dict[str, str], words: str) -> None:
    refused(launch, "onnx", words, **env)


def test_an_image_without_the_framework_names_the_one_that_has_it(launch: Start, changed: Changed) -> None:
    if not environment.lacks("torch"):
        pytest.skip("this environment has PyTorch")
    words = "pytorch needs torch, which is not installed. use the image server-torch."
    refused(launch, changed("onnx", framework="pytorch"), words)


def test_requests_that_come_at_once_share_batches(launch: Start, expected: dict[str, Any]) -> None:
    server = launch("onnx", BATCH_WAIT_MS="300", MAX_BATCH="16")
    images = expected["images"][:16]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda one: ask(server, "POST", "/predict", {"instances": [one]}), images))
    assert [said.status for said in found] == [200] * 16
    for said, wanted in zip(found, expected["logits"], strict=False):
        assert said.json["predictions"][0] == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    of = '{model="digits",version="1"}'
    after = series(server)
    assert after[f"trainyard_model_batch_rows_sum{of}"] == 16
    assert after[f"trainyard_model_batch_rows_count{of}"] < 8


def test_a_wrong_request_spoils_no_other_in_its_batch(launch: Start, changed: Changed, interpreter: Path) -> None:
    """Rows that the model can't compute fail alone: here it takes logarithms first."""
    folder = changed("sklearn", outputs=[{"name": "label", "datatype": "INT64", "shape": [-1]}])
    picky = (
        "import sys, joblib, numpy as np; from sklearn.pipeline import make_pipeline as pipe;"
        "from sklearn.preprocessing import FunctionTransformer as F;"
        "m = joblib.load(sys.argv[1]); f = F(np.log1p, check_inverse=False, validate=True);"
        "joblib.dump(pipe(f, m).fit(np.eye(64)[:10], range(10)), sys.argv[1])"
    )
    subprocess.run([interpreter, "-c", picky, folder / "model.joblib"], check=True)
    sign(folder)
    server = launch(folder, BATCH_WAIT_MS="300", MAX_BATCH="8")
    rows = [[0.0] * 64, [-5.0] * 64, [0.5] * 64]  # the logarithm of -4 is none, and the model takes none
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda row: ask(server, "POST", "/predict", {"instances": [row]}), rows))
    assert [said.status for said in found] == [200, 500, 200]
    assert found[1].json["error"].startswith("the model failed: ValueError")
    assert "NaN" not in found[1].body.decode()
    assert "contains NaN" in server.output()


def test_who_has_gone_is_computed_for_no_more(launch: Start) -> None:
    server = launch("onnx", BATCH_WAIT_MS="1000", MAX_BATCH="4")
    body = json.dumps({"instances": [[0.0] * 64]}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as one:
        one.sendall(b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wait(lambda: series(server)[IN_FLIGHT] == 1, "the request")
    assert ask(server, "POST", "/predict", {"instances": [[0.0] * 64]}).status == 200
    assert server.admin_page("/readyz")[0] == 200


def test_a_body_beyond_the_limit_is_refused(launch: Start) -> None:
    server = launch("onnx", MAX_BODY_MB="0.01")
    words = "body: larger than 0.01 MB. send smaller requests, or raise MAX_BODY_MB."
    said = ask(server, "POST", "/predict", b" " * 20_000)
    assert (said.status, said.json["error"]) == (413, words)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/predict", iter([b" " * 6_000] * 3), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})  # fmt: skip
    found = connection.getresponse()
    assert (found.status, json.loads(found.read())["error"]) == (413, words)


def test_a_full_queue_sends_away(launch: Start) -> None:
    server = launch("onnx", BATCH_WAIT_MS="2000", MAX_BATCH="64", MAX_QUEUE="2")
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ask(server, "POST", "/predict", {"instances": [[0.0] * 64]}), range(6)))
    assert sorted(said.status for said in found) == [200, 200, 503, 503, 503, 503]
    refused = next(said for said in found if said.status == 503)
    assert refused.json["error"] == "2 requests are already waiting. retry in a second."
    assert refused.headers["retry-after"] == "1"


class Clients:
    """Clients that keep their connections; as behind a Service, a new one goes to a server that was just ready."""

    def __init__(self, servers: list[Server], count: int) -> None:
        self.servers, self.ready, self.halt = servers, list(servers), threading.Event()
        self.answered: Counter[int] = Counter()  # by the server's port
        self.failed: list[str] = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._ask, args=(at,)) for at in range(count)]
        for one in [*self.threads, threading.Thread(target=self._look)]:
            one.start()

    def _look(self) -> None:
        while not self.halt.wait(0.1):
            self.ready = [one for one in self.servers if one.admin_page("/readyz")[0] == 200]

    def _ask(self, at: int) -> None:
        body = json.dumps({"inputs": [tensor([[0.0] * 64])]})
        connection: http.client.HTTPConnection | None = None
        while not self.halt.is_set():
            try:
                if connection is None:
                    server = self.ready[at % len(self.ready)]
                    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
                connection.request("POST", f"{MODEL}/infer", body)
                found = connection.getresponse()
                found.read()
            except (OSError, http.client.HTTPException) as error:
                with self.lock:
                    self.failed.append(repr(error))
                connection = None
                continue
            with self.lock:
                self.answered[server.port] += 1
                if found.status != 200:
                    self.failed.append(str(found.status))
            if found.getheader("connection") == "close":
                connection.close()
                connection = None

    def stop(self) -> None:
        """Waits for all."""
        self.halt.set()
        for one in self.threads:
            one.join(60)


def test_it_ends_without_a_failed_request(launch: Start) -> None:
    """First it is not ready, and still answers; then, when nobody asks it any more, its ports close."""
    old, new = launch("onnx", DRAIN_S="3"), launch("onnx")
    clients = Clients([old, new], 8)
    wait(lambda: clients.answered[old.port] > 100 and clients.answered[new.port] > 100, "answers of both")
    old.process.terminate()
    wait(lambda: old.admin_page("/readyz")[0] == 503, "its end")
    assert old.admin_page("/readyz") == (503, "not ready: ends\n")
    said = ask(old, "POST", "/predict", {"instances": [[0.0] * 64]})
    assert (said.status, said.headers["connection"]) == (200, "close")
    assert old.process.wait(30) == 0
    before = clients.answered[new.port]
    wait(lambda: clients.answered[new.port] > before + 200, "answers of the new one alone")
    clients.stop()
    assert clients.failed == []
    assert clients.answered[old.port] > 0
    assert clients.answered[new.port] > before > 0


def test_a_server_that_is_killed_fails_requests(launch: Start) -> None:
    """The control: what the test above counts is there to be seen."""
    old, new = launch("onnx"), launch("onnx")
    clients = Clients([old, new], 8)
    wait(lambda: clients.answered[old.port], "answers")
    old.kill()
    wait(lambda: clients.failed, "a failure")
    clients.stop()
    assert clients.failed


def test_what_was_begun_is_answered(launch: Start) -> None:
    server = launch("onnx", BATCH_WAIT_MS="3000", MAX_BATCH="64", DRAIN_S="0.2")
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(ask, server, "POST", "/predict", {"instances": [[0.0] * 64]})
        wait(lambda: series(server)[IN_FLIGHT] == 1, "the request")
        server.process.terminate()
        assert late.result(30).status == 200
    assert server.process.wait(30) == 0
