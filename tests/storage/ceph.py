"""A real Ceph on this machine, from Debian's packages: a monitor, a store of objects in memory, and the object gateway.

Nothing is installed: the packages that this machine lacks are unpacked into the cache and run from there.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType

from trainyard.paths import cache_dir
from trainyard_agent.store import connect
from trainyard_agent.store.connect import Access
from trainyard_dev.apiserver.processes import free_ports

ADMIN = "ADMIN000000000000000"
PACKAGES = ("radosgw", "ceph-mon", "ceph-osd", "ceph-common")
HOW = "make ceph"


def unpacked() -> Path:
    """Where the packages' files lie, unpacked or not."""
    return cache_dir() / "ceph" / "root"


def missing() -> str:
    """Why there is no Ceph here; "" when there is."""
    if not (unpacked() / "usr/bin/radosgw").exists():
        return f"Ceph's packages are not in the cache; on Debian 12, unpack them there once: {HOW}"
    return ""


def unpack() -> None:
    """Download the packages and what they need beyond this machine's own, and unpack them into the cache."""
    folder = unpacked().parent
    archives, fresh = folder / "archives", folder / "root.new"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    subprocess.run(
        ["apt-get", "install", "--download-only", "--yes", "--no-install-recommends",
         "-o", f"Dir::Cache::archives={archives}", "-o", "APT::Sandbox::User=root", *PACKAGES],
        check=True,
    )  # fmt: skip
    for file in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", file, fresh], check=True)
    shutil.rmtree(archives)
    shutil.rmtree(unpacked(), ignore_errors=True)
    fresh.rename(unpacked())


class Cluster:
    """A running cluster; `root` is the access of the user that makes users and owns buckets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = folder, list[subprocess.Popen[bytes]]()
        self.root = Access(f"http://127.0.0.1:{free_ports(1)[0]}", ADMIN, secrets.token_hex(20), "us-east-1")
        self._write()

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop()

    def _write(self) -> None:
        top, lib = unpacked(), unpacked() / "usr/lib/x86_64-linux-gnu"
        self.fsid, self.mon = str(uuid.uuid4()), f"127.0.0.1:{free_ports(1)[0]}"
        settings = {
            "fsid": self.fsid,
            "mon host": f"v2:{self.mon}",
            "keyring": self.folder / "keyring",
            "run dir": self.folder,
            "admin socket": "",
            "log file": self.folder / "$name.log",
            "mon data": self.folder / "mon",
            "mon cluster log file": self.folder / "cluster.log",
            "osd data": self.folder / "osd",
            "osd objectstore": "memstore",
            "memstore device bytes": 1 << 30,
            "osd class dir": lib / "rados-classes",
            "plugin dir": lib / "ceph",
            "erasure code dir": lib / "ceph/erasure-code",
            "osd crush chooseleaf type": 0,
            "osd pool default size": 1,
            "osd pool default min size": 1,
            "osd pool default pg num": 1,
            "osd pool default pgp num": 1,
            "osd pool default pg autoscale mode": "off",
            "mon allow pool size one": "true",
            "mon max pg per osd": 1000,
            "mon data avail crit": 0,  # a monitor ends itself where a disk is nearly full
            "public network": "127.0.0.0/8",
            "rgw data": self.folder / "rgw",
            "rgw frontends": f"beast endpoint={self.root.host}",
            "rgw cache enabled": "true",
        }
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        self.conf = self.folder / "ceph.conf"
        self.conf.write_text(f"[global]\n{lines}")
        paths = ":".join(map(str, (lib, lib / "ceph", top / "lib/x86_64-linux-gnu")))
        self.env = os.environ | {
            "LD_LIBRARY_PATH": paths,
            "PATH": f"{top / 'usr/bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(top / "usr/lib/python3/dist-packages"),
            "CEPH_CONF": str(self.conf),
        }

    def _call(self, *argv: object, timeout: float = 300) -> str:
        words = [*self._program(argv[0]), "--conf", str(self.conf), *map(str, argv[1:])]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise AssertionError(f"{' '.join(words)} failed: {done.stdout[-800:]}{done.stderr[-800:]}")
        return done.stdout

    def _run(self, *argv: object) -> None:
        words = [*self._program(argv[0]), "--conf", str(self.conf), *map(str, argv[1:]), "--foreground"]
        out = (self.folder / f"{argv[0]}.out").open("wb")
        self.running.append(subprocess.Popen(words, env=self.env, stdout=out, stderr=subprocess.STDOUT))

    def _start(self) -> None:
        monmap = self.folder / "monmap"
        keys, every = self.folder / "keyring", "allow *"
        for name, caps in (
            ("mon.", {"mon": every}),
            ("osd.0", {"mon": "allow profile osd", "osd": every}),
            ("client.admin", {"mon": every, "osd": every, "mgr": every}),
        ):
            words = [word for kind, cap in caps.items() for word in ("--cap", kind, cap)]
            new = () if keys.exists() else ("--create-keyring",)
            self._call("ceph-authtool", keys, *new, "--gen-key", "--name", name, *words)
        self._call("monmaptool", "--create", "--addv", "a", f"[v2:{self.mon}]", "--fsid", self.fsid, monmap)
        self._call("ceph-mon", "--id", "a", "--mkfs", "--monmap", monmap, "--keyring", keys)
        self._run("ceph-mon", "--id", "a")
        osd = str(uuid.uuid4())
        assert self._call("ceph", "osd", "new", osd).strip() == "0"
        (self.folder / "osd").mkdir()
        self._call("ceph-osd", "--id", "0", "--mkfs", "--osd-uuid", osd)
        self._run("ceph-osd", "--id", "0")
        (self.folder / "rgw").mkdir()
        user = ("user", "create", "--uid", "trainyard-root", "--display-name", "trainyard", "--access-key", ADMIN)
        caps = "users=*;user-policy=*"
        made = self._call("radosgw-admin", *user, "--secret-key", self.root.password, "--caps", caps)
        assert json.loads(made)["user_id"] == "trainyard-root"
        self._run("radosgw", "--id", "admin")
        self._await()

    @staticmethod
    def _program(name: object) -> list[str]:
        """`ceph` is a script for this machine's own Python, not the tests'."""
        path = str(unpacked() / "usr/bin" / str(name))
        return ["/usr/bin/python3", path] if name == "ceph" else [path]

    def _await(self) -> None:
        end = time.monotonic() + 120
        while True:
            try:
                connect.client(self.root, patient=False).list_buckets()
                return
            except Exception as error:
                if time.monotonic() > end or any(process.poll() is not None for process in self.running):
                    raise AssertionError(f"the gateway did not start: {error}, see {self.folder}") from error
                time.sleep(0.3)

    def _stop(self) -> None:
        for process in reversed(self.running):
            process.kill()
            process.wait()


if __name__ == "__main__":
    unpack()
