"""One pod of a run with requirements: its three containers as programs on this machine, against a real store."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import wheelhouse
from wheelhouse import IMAGE

from servers import Server, env_of
from trainyard.kinds import packages
from trainyard.paths import ROOT
from trainyard_agent.runs import requirements
from trainyard_agent.store import objects

PLACE = "runs/vision/packages/{}.tar.gz"
Said = tuple[int, str]


@dataclass
class Pod:
    """One pod's volume, and what runs there in turn."""

    volume: Path
    server: Server
    index: str = ""
    env: dict[str, str] = field(default_factory=dict)

    def run(self, text: str) -> Said:
        """Everything before the command: code and, of the last that ran, exit code and output."""
        (self.volume / "code").mkdir(parents=True)
        (self.volume / "code/requirements.txt").write_text(text)
        digest = requirements.read(lambda name: (self.volume / "code" / name).read_text(), "requirements.txt").digest()
        place, base = f"--packages={PLACE.format(digest)}", f"--base={self.volume}"
        code = f"--into={self.volume}/code"
        said = self._agent("fetch", code, base, place, "--requirements=requirements.txt", f"--wheels={packages.WHEELS}")
        if said[0]:
            return said
        tools = self.volume / ".packages"
        env = {"PYTHONUSERBASE": f"{self.volume}/packages", "TMPDIR": str(self.volume), **self.env}
        installed = self._run([IMAGE, f"{tools}/install_packages.py", f"{tools}/plan.json"], env)
        if installed[0]:
            return installed
        kept = self._agent("keep", code, base, place)
        return kept[0], installed[1] + kept[1]

    def command(self, *words: str) -> Said:
        """The run's own command."""
        return self._run([IMAGE, *words], {"PYTHONUSERBASE": f"{self.volume}/packages"})

    def program(self, *words: str, **env: str) -> Said:
        """A program of a package as the run's own command."""
        command = list(packages.started(words))
        return self._run(command, {"PYTHONUSERBASE": f"{self.volume}/packages", **env})

    def fetch_without_code(self, texts: dict[str, str], name: str) -> Said:
        """The first of the three, of a job whose code is in its image: the requirements come with the manifest."""
        self.volume.mkdir()
        words = [f"--into={self.volume}", f"--base={self.volume}", f"--packages={PLACE.format('0' * 64)}"]
        words += [f"--requirements={name}", f"--wheels={packages.WHEELS}"]
        return self._agent("fetch", *words, **{packages.FILES: json.dumps(texts)})

    def _agent(self, operation: str, *words: str, **more: str) -> Said:
        env = {"PYTHONPATH": str(ROOT / "scripts"), **env_of(self.server.root)}
        env |= more | ({"INDEX_URL": self.index} if self.index else {})
        return self._run([sys.executable, "-m", "trainyard_agent", "run-files", operation, *words], env)

    def _run(self, command: list[str], env: dict[str, str]) -> Said:
        made = {"PATH": os.environ["PATH"], "HOME": str(self.volume), **env}
        done = subprocess.run(command, env=made, capture_output=True, text=True, cwd=self.volume)
        return done.returncode, done.stdout + done.stderr


def put(server: Server, wheel: Path) -> None:
    """What `trainyard wheels put` leaves in the store."""
    digest = wheelhouse.sha256(wheel)
    with open(wheel, "rb") as file:
        objects.put(server.admin, "runs", f"shared/wheels/{digest}/{wheel.name}", file, wheel.stat().st_size, digest)


def stored(server: Server) -> list[str]:
    return [str(one.object_name) for one in server.admin.list_objects("runs", "vision/packages/", recursive=True)]
