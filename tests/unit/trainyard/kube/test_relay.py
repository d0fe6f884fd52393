"""The local server that forwards requests with the caller's own token, against a real server."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from local_server import Answers, kubeconfig, serving

from trainyard.errors import TrainyardError
from trainyard.kube import Access, KubeError
from trainyard.kube.relay import Relay, token

PATH = "/apis/v2beta1/runs?filter=a%20b"
# A plugin whose token expires at once: each request needs the next.
PLUGIN = """n=$(($(cat {0} 2>/dev/null || echo 0) + 1)); echo $n >{0}
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
"status": {{"token": "'"token-$n"'", "expirationTimestamp": "2020-01-01T00:00:00Z"}}}}'"""
Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service() -> Iterator[SimpleNamespace]:
    """`asked` is what came in; an answer on /apis/slow waits for `go` after its first piece."""
    state = SimpleNamespace(asked=[], go=threading.Event(), url="")

    class Handler(Answers):
        def get(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.asked.append((self.command, self.path, dict(self.headers.items()), body))
            if self.path == "/apis/slow":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"first")
                state.go.wait(10)
                self.wfile.write(b"second")
            else:
                self.answer(403 if "forbidden" in self.path else 200, {"multi_user": True})

        post = do_DELETE = get  # noqa: N815

    with serving(Handler) as state.url:
        yield state


@contextmanager
def relay_to(url: str, folder: Path, **user: Any) -> Iterator[Ask]:
    """Runs a relay while the block runs; yields what sends it a request."""
    config = kubeconfig(folder / "config", "http://127.0.0.1:1", **(user or {"token": "mine"}))
    with Relay(Access(kubeconfig=str(config)).connect(), url) as relay, urllib3.PoolManager() as pool:
        assert relay.server_address[0] == "127.0.0.1"
        threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

        def ask(method: str, path: str, body: Any = None, whole: bool = True, **headers: str) -> Any:
            named = {name.replace("_", "-"): value.format(port=relay.port) for name, value in headers.items()}
            at, how = f"http://localhost:{relay.port}{path}", dict[str, Any](redirect=False, preload_content=whole)
            return pool.request(method, at, body=body, headers=named, retries=False, **how)

        yield ask
        relay.shutdown()


@pytest.fixture
def ask(service: SimpleNamespace, tmp_path: Path) -> Iterator[Ask]:
    with relay_to(service.url, tmp_path) as made:
        yield made


def test_a_request_goes_on_as_it_is_with_the_caller_s_token(ask: Ask, service: SimpleNamespace) -> None:
    answer = ask("POST", PATH, b"{}", Authorization="Bearer theirs", Cookie="a=b", Content_Type="application/json")
    assert (answer.status, json.loads(answer.data)) == (200, {"multi_user": True})
    [(method, path, headers, body)] = service.asked
    assert (method, path, body) == ("POST", PATH, b"{}")
    assert headers["Authorization"] == "Bearer mine" and headers["Content-Type"] == "application/json"
    assert "Cookie" not in headers and headers["Host"] == service.url.removeprefix("http://")
    assert ask("DELETE", "/apis/forbidden").status == 403


def test_an_answer_comes_as_it_is_written(ask: Ask, service: SimpleNamespace) -> None:
    answer = ask("GET", "/apis/slow", whole=False)
    assert answer.read1(100) == b"first"
    service.go.set()
    assert answer.read() == b"second"


def test_an_expired_token_is_renewed(service: SimpleNamespace, tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never",
              "args": ["-c", PLUGIN.format(tmp_path / "count")]}  # fmt: skip
    with relay_to(service.url, tmp_path, exec=plugin) as ask:
        assert [ask("GET", PATH).status for _ in range(2)] == [200, 200]
    first, second = (headers["Authorization"] for _, _, headers, _ in service.asked)
    assert first.startswith("Bearer token-") and second.startswith("Bearer token-") and first != second


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:{port}"},  # a name that leads to 127.0.0.1
        {"Host": "localhost:1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},  # another program's page
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_pages_of_a_browser_are_refused(ask: Ask, service: SimpleNamespace, headers: dict[str, str]) -> None:
    answer = ask("GET", PATH, **headers)
    assert answer.status == 403 and "no page in a browser" in json.loads(answer.data)["message"]
    assert service.asked == []
    assert ask("GET", PATH, Host="127.0.0.1:{port}", Origin="http://localhost:{port}").status == 200


def test_only_the_api_is_forwarded_and_links_lead_on(ask: Ask, service: SimpleNamespace) -> None:
    for path in ("/", "/runs/x", "/apis"):
        answer = ask("GET", path)
        assert (answer.status, answer.headers["Location"]) == (307, f"{service.url}/")
    assert ask("POST", PATH, iter([b"{}"])).status == 411
    assert service.asked == []


def test_a_service_or_a_port_that_can_t_be_had(tmp_path: Path) -> None:
    with relay_to("http://127.0.0.1:1", tmp_path) as ask:
        answer = ask("GET", PATH)
        said = json.loads(answer.data)
        assert answer.status == 502 and said["code"] == 14 and "does not answer: Connection refused" in said["error"]
    kube = Access(kubeconfig=str(tmp_path / "config")).connect()
    with Relay(kube, "http://a") as relay, pytest.raises(KubeError, match=f"port {relay.port} on this machine can't"):
        Relay(kube, "http://a", relay.port)


@pytest.mark.parametrize(
    ("user", "access", "says"),
    [({"username": "me", "password": "secret"}, {}, "the kubeconfig has no token"),
     ({"token": "mine"}, {"user": "ada"}, "--as sends no token of that user")],
)  # fmt: skip
def test_a_kubeconfig_without_a_token_is_refused(tmp_path: Path, user: Any, access: Any, says: str) -> None:
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", **user)
    with pytest.raises(TrainyardError, match=says):
        token(Access(kubeconfig=str(config), **access).connect())
