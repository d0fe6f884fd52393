"""A node that is played: pods that write as containerd does, kubelet that rotates and removes, and a real collector."""

import os
import shutil
import subprocess
import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import yaml

from trainyard.chart import helm
from trainyard.paths import ROOT
from trainyard_dev.chart import package

TEAMS = ROOT / "tests" / "policies" / "teams.yaml"  # vision and speech


class Writer(threading.Thread):
    """A container that writes numbered lines until it is told to stop; every so many of them its file is put aside."""

    def __init__(self, root: Path, team: str, pod: str, *, every_s: float = 0.01, rotate: int = 400) -> None:
        super().__init__(daemon=True)
        self.team, self.pod, self.uid = team, pod, str(uuid.uuid4())
        self.folder = root / f"{team}_{pod}_{self.uid}"
        self.file = self.folder / "pytorch" / "0.log"
        self.file.parent.mkdir(parents=True)
        self.written, self._every_s, self._rotate = 0, every_s, rotate
        self._ended, self._goes = threading.Event(), threading.Event()
        self._goes.set()

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            if not self._goes.is_set():
                continue
            self._write()
            if self.written % self._rotate == 0:
                self.file.rename(self.file.with_name(f"0.log.{datetime.now(UTC):%Y%m%d-%H%M%S}"))

    def _write(self) -> None:
        text = f"{self.team} {self.pod} line {self.written}"
        if self.written % 50 == 7:  # longer than what the runtime puts into one line
            text += " " + "x" * 20_000
        pieces = [text[at : at + 16_384] for at in range(0, len(text), 16_384)]
        stamp = datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
        with open(self.file, "a") as file:
            for piece in pieces:
                tag = "F" if piece is pieces[-1] else "P"
                file.write(f"{stamp}{self.written % 1000:03d}Z stdout {tag} {piece}\n")
        self.written += 1

    def pause(self, on: bool) -> None:
        """Stop writing for a while, as when the node is stopped."""
        (self._goes.clear if on else self._goes.set)()

    def end(self) -> None:
        """The last line is written."""
        self._ended.set()
        self.join()

    def remove(self) -> None:
        """The pod is deleted: kubelet takes its logs away."""
        shutil.rmtree(self.folder)


class Flood(threading.Thread):
    """A pod whose containers write all they can, without an end; kubelet rotates and keeps five files."""

    PIECE = 16_384  # what the runtime puts into one line, at most
    KEPT, LARGEST, LOOKS_S = 5, 10 << 20, 10.0

    def __init__(self, root: Path, team: str, pod: str, containers: int, *, mib_s: float, whole: bool) -> None:
        """`mib_s`: of all containers together; `whole`: lines end, else none ever does."""
        super().__init__(daemon=True)
        folder = root / f"{team}_{pod}_{uuid.uuid4()}"
        self._files = [folder / f"c-{number}" / "0.log" for number in range(containers)]
        for file in self._files:
            file.parent.mkdir(parents=True)
        self._pause_s, self._tag = containers * 0.5 / mib_s, "F" if whole else "P"
        self._over = threading.Event()
        self.mib = 0.0

    def run(self) -> None:
        looked, text = time.monotonic(), "x" * (100 if self._tag == "F" else self.PIECE)
        while not self._over.is_set():
            began = time.monotonic()
            for file in self._files:
                stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z stdout {self._tag}"
                line = f"{stamp} {text}\n"
                with open(file, "a") as out:
                    out.write(line * ((512 << 10) // len(line)))
                self.mib += 0.5
            if time.monotonic() - looked > self.LOOKS_S:
                looked = time.monotonic()
                for file in self._files:
                    self._rotate(file)
            self._over.wait(max(0.0, began + self._pause_s - time.monotonic()))

    def _rotate(self, file: Path) -> None:
        if file.stat().st_size > self.LARGEST:
            file.rename(file.with_name(f"0.log.{datetime.now(UTC):%Y%m%d-%H%M%S}"))
        for old in sorted(file.parent.glob("0.log.*"))[: -self.KEPT + 1]:
            old.unlink()

    def end(self) -> None:
        """It is over, and its files are gone."""
        self._over.set()
        self.join()
        shutil.rmtree(self._files[0].parents[1])


class Collector:
    """The real program with the chart's own configuration, its folders and ports replaced."""

    def __init__(self, program: Path, folder: Path, pods: Path, key: Path, ports: list[int]) -> None:
        self.program, self.log = program, folder / "collector.log"
        self.state = folder / "state"
        self.state.mkdir()
        sets = ["logs.enabled=true", "logs.flushEvery=1s"]
        rendered = package.render("kind", sets=sets, values=[TEAMS])
        objects = {(o["kind"], o["metadata"]["name"]): o for o in rendered}
        made = yaml.safe_load(objects["ConfigMap", "trainyard-logs"]["data"]["collector.yaml"])
        for receiver in made["receivers"].values():
            for which in ("include", "exclude"):
                if which in receiver:
                    receiver[which] = [one.replace("/pods/", f"{pods}/", 1) for one in receiver[which]]
        for exporter in made["exporters"].values():
            exporter["keys"] = str(key)
        made["extensions"]["file_storage"]["directory"] = str(self.state)
        made["extensions"]["file_storage"]["compaction"]["directory"] = str(self.state)
        made["extensions"]["health_check"]["endpoint"] = f"127.0.0.1:{ports[0]}"
        [reader] = made["service"]["telemetry"]["metrics"]["readers"]
        reader["pull"]["exporter"]["prometheus"] |= {"host": "127.0.0.1", "port": ports[1]}
        self.configuration = folder / "collector.yaml"
        self.configuration.write_text(yaml.safe_dump(made))
        container = helm.pod_specs(objects["DaemonSet", "trainyard-logs"])[0]["containers"][0]
        self.args = [arg for arg in container["args"] if not arg.startswith("--config=")]
        self.process: subprocess.Popen[bytes] | None = None
        self.most = 0  # KiB of memory that it has had at most

    def start(self) -> None:
        """Begin, or go on."""
        env = {"PATH": os.environ["PATH"], "MEMORY_LIMIT": str(256 << 20)}
        with open(self.log, "ab") as log:
            command = [self.program, f"--config={self.configuration}", *self.args]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env)

    def stop(self, *, hard: bool = True) -> None:
        """End it at once, as a node that is lost does, or let it end."""
        assert self.process
        self.look()
        (self.process.kill if hard else self.process.terminate)()
        assert self.process.wait(30) in (-9, 0), self.tail()

    def look(self) -> None:
        """Note how much memory it has had."""
        assert self.process and self.process.poll() is None, self.tail()
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        self.most = max(self.most, int(status.partition("VmHWM:")[2].split()[0]))

    def held(self, seconds: float) -> int:
        """KiB that it can not give back, at most, over that time: without pages of its queue on disk."""
        assert self.process
        most, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, self.tail()
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            most = max(most, int(status.partition("RssAnon:")[2].split()[0]))
            time.sleep(0.1)
        return most

    def tail(self) -> str:
        """The end of what it said."""
        return self.log.read_text()[-3000:]
