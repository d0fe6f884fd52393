"""A machine with fake podman, kind and kubectl, for the tests of clusters."""

import os
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard_dev.cluster import lifecycle, nodes
from trainyard_dev.gpu import detect, mock

Call = Callable[..., Any]
Usage = namedtuple("Usage", "total used free")
UP = ("cluster", "up", "--provider", "podman", "--images", "build", "--gpu", "mock")

# Podman that keeps containers as files of $FAKE/containers; a file of that folder holds the cluster's name.
PODMAN = r"""
echo "$*" >> "$FAKE/calls"
case "$1 $2" in
"info "*) echo 5.0;;
"ps "*) want=$(echo "$*" | sed -n 's/.*kind.cluster=\([^ ]*\).*/\1/p')
  for f in "$FAKE"/containers/*; do [ -e "$f" ] || continue
    [ -z "$want" ] || [ "$(cat "$f")" = "$want" ] || continue; basename "$f"; done;;
"inspect "*) [ -e "$FAKE/registry" ] || exit 1; echo running;;
"run "*) touch "$FAKE/registry";;
"port "*) echo "127.0.0.1:$FAKE_PORT";;
"push "*) [ ! -e "$FAKE/full" ] || { echo "Error: writing blob: no space left on device" >&2; exit 125; };;
"create "*) echo c0ffee;;
"cp "*) mkdir -p "$3";;
"rm "*) [ ! -e "$FAKE/delete-slow" ] || { touch "$FAKE/deleting"; sleep 0.5; }
  for name; do rm -f "$FAKE/containers/$name"
  [ "$name" != trainyard-registry ] || rm -f "$FAKE/registry"; done;;
"volume ls"*) [ ! -e "$FAKE/volumes/${5#label=}" ] || echo "${5#label=}";;
"volume rm"*) rm "$FAKE/volumes/$4";;
"exec "*) [ ! -e "$FAKE/no-exec" ] || { echo "mknod: Operation not permitted" >&2; exit 1; };;
esac
"""
KIND = r"""
echo "kind $*" >> "$FAKE/calls"; echo "$HTTPS_PROXY|$NO_PROXY|$no_proxy" > "$FAKE/proxies"
case "$1" in
create) for node in control-plane worker worker2 worker3
  do echo "$4" | tee "$FAKE/volumes/$4-$node" > "$FAKE/containers/$4-$node"; done
  [ ! -e "$FAKE/kind-hangs" ] || { touch "$FAKE/hanging"; exec sleep 60; }
  [ ! -e "$FAKE/kind-fails" ] || { printf 'Creating\nERROR: failed to init node with kubeadm\n' >&2; exit 1; };;
esac
"""
KUBECTL = r"""
echo "kubectl $*" >> "$FAKE/calls"
[ ! -e "$FAKE/not-ready" ] || case "$*" in *" wait "*)
  echo "timed out waiting for the condition on nodes/x" >&2; exit 1;; esac
"""


class Machine(SimpleNamespace):
    """The fake machine: `fake` is the state of its programs."""

    fake: Path
    cache: Path

    def state(self) -> list[str]:
        """Existing containers and folders of clusters, and volumes whose node is gone."""
        folder = self.cache / "clusters"
        left = [f"folder {p.name}" for p in folder.iterdir()] if folder.exists() else []
        left += ["registry"] if (self.fake / "registry").exists() else []
        nodes = sorted(p.name for p in (self.fake / "containers").iterdir())
        return nodes + left + [f"volume of {v.name}" for v in (self.fake / "volumes").iterdir() if v.name not in nodes]

    def calls(self) -> list[str]:
        return (self.fake / "calls").read_text().splitlines()


def pretend(
    folder: Path, cache: Path, port: str, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """Puts the fake programs on PATH; `port` is the registry's."""
    fake = folder / "fake"
    (fake / "containers").mkdir(parents=True)
    (fake / "volumes").mkdir()
    library = folder / "library"
    library.write_text("nvml")
    monkeypatch.setenv("FAKE", str(fake))
    monkeypatch.setenv("FAKE_PORT", port)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    tools = {"podman": program("podman", PODMAN), "kind": program("kind", KIND), "kubectl": program("kubectl", KUBECTL)}
    monkeypatch.setattr("trainyard_dev.tools.binary", lambda name: tools[name])
    monkeypatch.setattr("trainyard_dev.images.supply.is_built", lambda tool: True)
    monkeypatch.setattr(lifecycle, "_raise_inotify", lambda: None)
    monkeypatch.setattr(mock, "cached_library", lambda: library)
    monkeypatch.setattr(detect, "find_real", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle.shutil, "disk_usage", lambda path: Usage(10**12, 0, 10**12))
    monkeypatch.setattr(nodes, "kernel_has_nfs", lambda: True)
    return Machine(fake=fake, cache=cache)
