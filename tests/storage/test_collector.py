"""The real collector between pods that are played and a real MinIO: each part is stopped in turn, lines are counted.

It runs where the collector is built: `bin/trainyard tools path otel-collector`.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import KEY, FakeApi
from pod_logs import Collector, Flood, Writer
from test_logs import Names, Pod

from servers import Server, start
from trainyard.training import kept
from trainyard_dev import tools
from trainyard_dev.apiserver.processes import free_ports
from trainyard_dev.tools import build, golang
from waiting import wait

STOPPED_S = 12.0  # how long each of store, collector and node is stopped
CALM_S = 4.0
FLOODED_S = 8.0
BUILT = build.is_built(build.builder("otel-collector"))
pytestmark = pytest.mark.skipif(not BUILT, reason="the collector isn't built: bin/trainyard tools path otel-collector")


@pytest.fixture
def key(tmp_path: Path) -> Callable[[Server], Path]:
    """The Secret of the collector as it is mounted."""

    def made(server: Server) -> Path:
        folder = tmp_path / "key"
        folder.mkdir(exist_ok=True)
        held = {"endpoint": server.root.endpoint, "region": "us-east-1", "access-key": KEY[0], "secret-key": KEY[1]}
        for name, value in held.items():
            (folder / name).write_text(value)
        return folder

    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """A MinIO that can be stopped and goes on at the same place."""

    class Store:
        def __init__(self) -> None:
            self.port = free_ports(1)[0]
            self.begin()

        def begin(self) -> None:
            self.process, self.server = start(tmp_path / "data", tmp_path / "certs", port=self.port)

    made = Store()
    yield made
    made.process.stop()


@pytest.fixture
def server(store: Any) -> Server:
    found: Server = store.server
    return found


def read(client: Pod, writer: Writer) -> tuple[list[str], int]:
    """(what a member reads of the pod, how many lines lie in the store)."""
    raw = 0

    class Counting(Pod):
        def tree(self, place: str, folder: Path) -> Names:
            nonlocal raw
            names = super().tree(place, folder)
            raw += sum(1 for name in names for _ in kept.objects.lines((folder / name).read_bytes(), name))
            return names

    return shown(Counting(client.client), writer), raw


def shown(client: Pod, writer: Writer) -> list[str]:
    """What a member reads of the pod."""
    try:
        found = list(kept.logs(client, f"logs/{writer.team}", writer.pod))  # type: ignore[arg-type]
    except kept.NoLogError:
        return []
    return [line.text for log in found for line in log.lines]


def arrives(store: Any, writer: Writer) -> None:
    """Waits until the store has what the pod had written by now, and not little."""
    until, root = max(100, writer.written), Pod(store.server.admin)
    wait(lambda: len(shown(root, writer)) >= until, f"line {until} of {writer.pod}", 60)


@pytest.fixture
def teams(logged: None, ready: Server, api: FakeApi) -> FakeApi:
    """The store with its bucket, and two teams with their keys."""
    return api


@pytest.fixture
def collector(tmp_path: Path, store: Any, key: Any) -> Collector:
    """The collector of a node with these teams, whose pods' files lie in pods/."""
    (tmp_path / "pods").mkdir()
    return Collector(tools.binary("otel-collector"), tmp_path, tmp_path / "pods", key(store.server), free_ports(2))


@pytest.mark.long
def test_what_is_stopped_loses_no_line(tmp_path: Path, store: Any, teams: FakeApi, collector: Collector) -> None:
    pods, api = tmp_path / "pods", teams
    writers = [Writer(pods, team, f"{pod}-worker-0") for team in ("vision", "speech") for pod in ("long", "short")]
    long = [one for one in writers if one.pod.startswith("long")]
    short = [one for one in writers if one.pod.startswith("short")]
    collector.start()
    for one in writers:
        one.start()
    for one in writers:
        arrives(store, one)

    store.process.stop()  # meanwhile two pods end, and go 10 s after their last line
    for one in short:
        one.end()
    time.sleep(10)
    for one in short:
        one.remove()
    time.sleep(STOPPED_S - 10)
    store.begin()
    for one in writers:
        arrives(store, one)

    collector.stop()  # at once, whatever it has in hand; the pods go on, and their files are rotated
    time.sleep(STOPPED_S)
    collector.start()
    for one in long:
        arrives(store, one)

    for one in long:  # the node: nothing on it goes on, its disk stays
        one.pause(True)
    collector.stop()
    time.sleep(STOPPED_S)
    collector.start()
    for one in long:
        one.pause(False)
    for one in long:
        arrives(store, one)

    wait(lambda: sum(one.written for one in writers) > 4000, "enough lines", 60)
    for one in long:
        one.end()
    time.sleep(10)
    for one in long:
        one.remove()
    collector.look()
    collector.stop(hard=False)  # what is in the queue is written first, or stays there

    collector.start()
    time.sleep(CALM_S)
    collector.stop(hard=False)
    lost = doubled = shown_twice = written = 0
    for one in writers:
        secret = api.secrets[one.team]
        lines, raw = read(Pod(store.server.client(secret["access-key"], secret["secret-key"])), one)
        numbers = [int(line.split()[3]) for line in lines]
        assert all(line.startswith(f"{one.team} {one.pod} line ") for line in lines)
        assert all(len(line) > 20_000 for line in lines if int(line.split()[3]) % 50 == 7)
        assert numbers == sorted(numbers), "lines are out of order"
        written += one.written
        lost += one.written - len(set(numbers))
        shown_twice += len(numbers) - len(set(numbers))
        doubled += raw - len(set(numbers))
    print(f"\n{written} lines: {lost} lost, {doubled} doubled in the store, {shown_twice} shown twice; "
          f"{collector.most // 1024} MiB at most")  # fmt: skip
    assert (lost, shown_twice) == (0, 0), collector.tail()
    assert written > 4000 and collector.most < 256 * 1024


@pytest.mark.long
@pytest.mark.parametrize(
    ("containers", "mib_s", "whole"),
    [pytest.param(1, 40, True, id="one that writes all the time"),
     pytest.param(48, 60, False, id="many whose lines never end")],
)  # fmt: skip
def test_a_team_that_floods_its_logs_takes_nothing_from_another(
    tmp_path: Path, store: Any, teams: FakeApi, collector: Collector, containers: int, mib_s: float, whole: bool
) -> None:
    flood = Flood(tmp_path / "pods", "vision", "flood", containers, mib_s=mib_s, whole=whole)
    victim = Writer(tmp_path / "pods", "speech", "calm-worker-0", every_s=0.1)
    collector.start()
    flood.start()
    time.sleep(CALM_S)
    victim.start()
    most = collector.held(FLOODED_S)
    victim.end()
    most = max(most, collector.held(10))  # the age at which a pod's last line is found
    victim.remove()
    flood.end()
    collector.stop(hard=False)
    secret = teams.secrets["speech"]
    lines, _ = read(Pod(store.server.client(secret["access-key"], secret["secret-key"])), victim)
    lost = victim.written - len({line.split()[3] for line in lines})
    print(f"\n{flood.mib:.0f} MiB beside {victim.written} lines: {lost} lost; {most // 1024} MiB at most")
    assert victim.written > 50 and lost == 0, collector.tail()
    assert most < 256 * 1024


def test_its_own_lines() -> None:
    """The tests beside the program: an object holds lines of one container, and a batch that failed comes again."""
    env = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", **golang.env()}
    golang.go("test", "-trimpath", "./...", cwd=build.source_dir(build.builder("otel-collector")), env=env)
