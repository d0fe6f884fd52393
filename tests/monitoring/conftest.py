"""The rules and dashboards of the chart `monitoring`, and promtool of the version that it installs."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from scraped import LONG_S, SCRAPE_S, Kubelet

from trainyard.errors import TrainyardError
from trainyard_agent.usage.prometheus import Prometheus, PrometheusError
from trainyard_dev import tools
from trainyard_dev.apiserver.processes import Server, free_ports


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The pinned promtool; skips where it can't be built."""
    try:
        return tools.binary("promtool")
    except TrainyardError as error:
        pytest.skip(f"no promtool: {error}")


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, after it has asked for some time; skips where it can't be built."""
    try:
        program = tools.binary("prometheus")
    except TrainyardError as error:
        pytest.skip(f"no prometheus: {error}")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    Kubelet.begun = time.time()
    kubelet = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    threading.Thread(target=kubelet.serve_forever, daemon=True).start()
    (port,) = free_ports(1)
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {SCRAPE_S}s}}\nscrape_configs:\n  - job_name: all\n    honor_labels: true\n"
        f"    static_configs: [{{targets: ['127.0.0.1:{kubelet.server_port}']}}]\n"
    )
    words = [
        f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--log.level=error",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    server = Server([program, *words], folder / "prometheus.log")
    found = Prometheus(f"http://127.0.0.1:{port}")

    def has_asked() -> bool:
        with suppress(PrometheusError):
            taken = found.vector("count_over_time(up[10m])", time.time())
            return bool(taken) and taken[0][1] >= LONG_S
        return False

    try:
        server.wait(has_asked, 120)
        yield found
    finally:
        server.stop()
        kubelet.shutdown()
