"""What the exporter queries besides its watches: backup, keys, certificates, used claims; and its server."""

import base64
import gzip
import http.client
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from exporter_objects import CONTRACT, NOW, ago

from trainyard_agent.api import ApiError
from trainyard_agent.exporter import certificates, serve
from trainyard_agent.exporter.aside import SlowPoller, live
from trainyard_agent.exporter.series import Page
from trainyard_agent.say import PlatformError

BACKUP = "/apis/batch/v1/namespaces/trainyard-system/cronjobs/trainyard-backup"
KEYS = "/api/v1/namespaces/trainyard-system/configmaps/trainyard-keys"
PODS = "/api/v1/namespaces/trainyard-system/pods"
FIGURES = """# HELP trainyard_nfs_bytes What a directory of the export takes on disk.
trainyard_nfs_bytes{namespace="vision",claim="data",directory="pvc-1",state="live"} 1024
trainyard_nfs_bytes{namespace="vision",claim="data",directory="archived/pvc-0",state="kept"} 7
"""


class Api:
    namespace = "trainyard-system"

    def __init__(self, **objects: Any) -> None:
        self.objects = {BACKUP: objects.get("backup"), KEYS: objects.get("keys"), **objects.get("hooks", {})}
        self.objects[PODS] = {"items": objects.get("pods", [])}

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        if not self.objects.get(path):
            raise ApiError(404, "not found")
        found: dict[str, Any] = self.objects[path]
        return found


def aside(**objects: Any) -> SlowPoller:
    return SlowPoller(Api(**objects), shown=lambda host, port: "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("backup", "line"),
    [
        (None, ""),
        ({"spec": {"suspend": True}, "status": {"lastSuccessfulTime": ago(60)}}, ""),
        ({"spec": {}, "status": {}}, ""),
        ({"spec": {}, "status": {"lastScheduleTime": ago(5), "active": [{}]}}, ""),
        ({"spec": {}, "status": {"lastScheduleTime": ago(900)}}, "0"),
        ({"spec": {"suspend": False}, "status": {"lastSuccessfulTime": ago(60)}}, f"{NOW.timestamp() - 60:.0f}"),
    ],
)
def test_when_a_backup_last_succeeded(backup: Any, line: str) -> None:
    asked = aside(backup=backup)
    asked.look({}, 0)
    page = Page()
    asked.write(page, set(), NOW.timestamp())
    name = "trainyard_backup_last_success_timestamp_seconds"
    assert page.lines.get(name, []) == ([f"{name} {line}"] if line else [])


def test_how_old_keys_are() -> None:
    asked = aside(keys={"data": {"vision": ago(3600)}})
    asked.look({}, 0)
    page = Page()
    asked.write(page, set(), NOW.timestamp())
    assert page.lines["trainyard_key_age_seconds"] == ['trainyard_key_age_seconds{name="team/vision"} 3600']


def test_what_claims_use_is_what_the_file_server_measured() -> None:
    assert list(live(FIGURES)) == [("vision", "data", 1024.0)]
    pods = [{"status": {"phase": "Running", "podIP": address}} for address in ("10.0.0.7", "fd00::7")]
    asked = aside(pods=[*pods, {"status": {"phase": "Pending"}}])
    urls: list[str] = []
    asked.fetched = lambda url: urls.append(url) or FIGURES + FIGURES.replace("vision", "other")  # type: ignore[func-returns-value]
    asked.look({}, 0)
    assert urls == ["http://10.0.0.7:8080/metrics", "http://[fd00::7]:8080/metrics"]
    page = Page()
    asked.write(page, {"vision"}, 0)
    assert page.lines["trainyard_claim_bytes"] == ['trainyard_claim_bytes{team="vision",claim="data",what="used"} 1024']


def certificate(folder: Path, days: int) -> str:
    file = folder / f"{days}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
         folder / "key", "-out", file, "-days", str(days), "-subj", "/CN=x"], check=True, capture_output=True,
    )  # fmt: skip
    return file.read_text()


def test_when_certificates_end_is_seen_without_their_secrets(tmp_path: Path) -> None:
    old, new = certificate(tmp_path, 10), certificate(tmp_path, 400)
    bundle = base64.b64encode((old + new).encode()).decode()

    def hook(namespace: str) -> Any:
        service = {"name": "operator", "namespace": namespace, "port": 443}
        return {"webhooks": [{"clientConfig": {"service": service, "caBundle": bundle}}]}

    hooks = {f"{certificates.GROUP}/{certificates.KINDS[0]}": {
        "items": [hook("trainyard-system"), hook("elsewhere"), {"webhooks": [{"clientConfig": {}}, {"no": "config"}]}]
    }}  # fmt: skip

    def shown(host: str, port: int) -> str:
        if host == "s3.example.org":
            raise OSError("refused")
        assert host == "operator.trainyard-system.svc" or port in (443, 6443)
        return old

    api: Any = Api(hooks=hooks)
    ends = certificates.expiries(api, {"s3": {"endpoint": "https://s3.example.org:9000"}}, shown)
    assert set(ends) == {"kube-apiserver", "webhook/operator:443", "authority/operator:443"}
    assert round((ends["authority/operator:443"] - ends["webhook/operator:443"]) / 86400) == 390
    assert certificates.ends_at("no certificate") == 0


def test_one_question_without_an_answer_keeps_no_other_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = aside(backup={"spec": {}, "status": {"lastSuccessfulTime": ["no time"]}}, keys={"data": {"vision": ago(1)}})
    asked.look({}, 0)
    asked.look({}, 1)
    assert asked.keys
    assert capsys.readouterr().out.count("the backup is unknown: ValueError") == 1


@pytest.fixture
def server() -> Any:
    found = serve.Server(0, serve.LastPage("pods, jobs"))
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def ask(server: serve.Server, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_server_says_nothing_before_all_is_listed(server: serve.Server) -> None:
    assert ask(server, "/metrics") == (503, b"not listed yet: pods, jobs\n")
    assert ask(server, "/healthz") == (200, b"ok\n")
    server.shown.put("a 1\n")
    assert ask(server, "/metrics") == (200, b"a 1\n")
    assert gzip.decompress(ask(server, "/metrics", **{"Accept-Encoding": "gzip"})[1]) == b"a 1\n"
    assert ask(server, "/other")[0] == 404
    server.shown.made -= serve.PATIENCE_S
    assert ask(server, "/healthz")[0] == 503


def test_a_contract_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "contract.json"
    file.write_text(json.dumps(CONTRACT))
    assert serve.contract_of(str(file))["teams"] == CONTRACT["teams"]
    file.write_text("{}")
    with pytest.raises(PlatformError, match=r"contract.json can't be read: KeyError: 'nodePools'"):
        serve.contract_of(str(file))
