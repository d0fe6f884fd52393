"""Builds the binaries of each folder `tools/<set>/` once per pin and keeps them in the cache."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard.shell import CommandError, run
from trainyard_dev import folders, patches
from trainyard_dev.progress import Progress
from trainyard_dev.tools import golang
from trainyard_dev.versions import ToolSet, is_version, load

# Next to a go.mod: files that the module's archive lacks, as it drops links and generated files. The set is then built
# from a copy of the module's source that includes them. Go itself ignores folders with this prefix.
ADDED = "_source"
# Names the Kubernetes version whose API server and kinds tests use, such as 1.35; unset or empty: the cluster's.
KUBERNETES = "TRAINYARD_KUBERNETES"
# Next to a go.mod: changes of the module's source, as patches that must fit exactly. The set is then built from a copy.
PATCHES = "patches"
# The compiler's GOGC (percent of growth before a collection): 7 % less time for some hundred MiB more.
COLLECT_AT = "400"
NETWORK_SIGNS = (
    "dial tcp",
    "no such host",
    "connection refused",
    "i/o timeout",
    "TLS handshake timeout",
    "proxyconnect",
    "403 Forbidden",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "module lookup disabled",
)


def source_dir(tool: ToolSet) -> Path:
    """The folder that holds the set's go.mod."""
    return ROOT / folders.find(ROOT, folders.TOOLS, tool.of or tool.name)


def pin(tool: ToolSet) -> str:
    """A name that changes with every input of the binaries: go.mod, go.sum, our own lines and the flags."""
    digest = hashlib.sha256(repr((tool.packages, tool.cgo, tool.tags, sorted(tool.stamp.items()))).encode())
    digest.update(tool.arch.encode())
    for path in sorted(source_dir(tool).iterdir()):
        if path.name in ("go.mod", "go.sum") or (path.suffix == ".go" and not path.name.endswith("_test.go")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for name in (ADDED, PATCHES):
        folder = source_dir(tool) / name
        for path in sorted(file for file in folder.rglob("*") if file.is_file()):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return f"{tool.version}-{digest.hexdigest()[:12]}"


def bin_dir(tool: ToolSet) -> Path:
    """The folder of the set's binaries in the cache, built or not."""
    return cache_dir() / "tools" / tool.name / pin(tool)


def is_built(tool: ToolSet) -> bool:
    """Whether every binary of the set is in the cache."""
    return all((bin_dir(tool) / name).exists() for _, name in tool.packages)


def ensure(purposes: Iterable[str], *, title: str = "Tools from pinned Go modules") -> int:
    """Builds the sets for the given purposes that aren't in the cache yet, and shows progress.

    Returns:
        how many sets were built; 0 when all existed.
    """
    wanted = [tool for tool in load().tools.values() if tool.purpose in set(purposes)]
    missing = [tool for tool in wanted if not is_built(tool)]
    if missing:
        progress = Progress(len(missing), title)
        threading.Thread(target=_fetch_all, args=(missing[1:],), daemon=True).start()
        for tool in missing:
            with progress.step(f"{tool.name} {tool.version}: {', '.join(name for _, name in tool.packages)}"):
                build(tool)
    return len(missing)


def binary(name: str, version: str = "", arch: str = "") -> Path:
    """The path of the binary called `name`; builds its set first when it isn't in the cache.

    Args:
        version: `1.35` or `1.35.4`, one that a set builds; left out: that of the family's own set.
        arch: another architecture, such as arm64: of its set this binary alone is built.

    Raises:
        TrainyardError: no set of versions.yaml builds that version of the binary, or the build failed.
    """
    tool = builder(name, version)
    if arch:
        tool = replace(tool, arch=arch, packages=tuple(one for one in tool.packages if one[1] == name))
    if not is_built(tool):
        build(tool)
    return bin_dir(tool) / name


def builder(name: str, version: str = "") -> ToolSet:
    """The set that builds a binary, as for `binary`. Raises TrainyardError when there is none."""
    known = [tool for tool in load().tools.values() if any(name == built for _, built in tool.packages)]
    if not known:
        raise TrainyardError(f"no tool set builds `{name}`", where="versions.yaml")
    for tool in known:
        if is_version(tool.version, version) if version else tool.default:
            return tool
    there = ", ".join(tool.version.removeprefix("v") for tool in known)
    raise TrainyardError(
        f"no tool set builds `{name}` {version or 'by default'}",
        where="versions.yaml",
        hint=f"use {there}, or add a set",
    )


def tested_kubernetes() -> ToolSet:
    """The set of the Kubernetes that tests run on: the one in $TRAINYARD_KUBERNETES, else the cluster's."""
    return builder("kube-apiserver", os.environ.get(KUBERNETES, ""))


def build(tool: ToolSet) -> None:
    """Compiles a set into a fresh folder and moves it into place whole, so that a broken build leaves no half cache.

    Processes that need the same set wait for the first one, and use what it has built.
    """
    target = bin_dir(tool)
    before = is_built(tool)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if before or not is_built(tool):
                _build(tool, target)
    except OSError as error:
        raise TrainyardError(
            f"building {tool.name} failed: {error.strerror}",
            where=str(target.parent),
            hint="free some space, or set TRAINYARD_CACHE to another folder",
        ) from None


def _build(tool: ToolSet, target: Path) -> None:
    work: Path | None = None
    flags = ["-trimpath", "-tags", ",".join(tool.tags), "-ldflags", _ldflags(tool)]
    try:
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
        made = work / "bin"
        made.mkdir()
        changed = any((source_dir(tool) / name).is_dir() for name in (ADDED, PATCHES))
        folder = _completed(tool, work) if changed else source_dir(tool)
        _compile(tool, folder, made, flags)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    except CommandError as error:
        raise TrainyardError(
            f"building {tool.name} {tool.version} failed: {_reason(error)}",
            where=str(source_dir(tool).relative_to(ROOT)),
            hint=_hint(error),
        ) from None
    finally:
        if work:
            shutil.rmtree(work, ignore_errors=True)


def _compile(tool: ToolSet, folder: Path, made: Path, flags: list[str]) -> None:
    """Runs one `go build` for the packages that Go names by their last folder, so that one links while others compile.

    A package of another name (`.`, or a folder like v3) is built by itself.
    """
    env = _go_env(tool) | ({} if os.environ.get("GOGC") else {"GOGC": COLLECT_AT})
    build = lambda *argv: golang.go("build", *flags, "-o", *argv, cwd=folder, env=env, hint="run `trainyard doctor`")  # noqa: E731
    together = (
        {p: name for p, name in tool.packages if not re.search(r"(^\.|/v\d+)$", p)} if len(tool.packages) > 1 else {}
    )
    if together:
        build(f"{made}/", *together)
    for package, name in tool.packages:
        if package in together:
            (made / package.rpartition("/")[2]).rename(made / name)
        else:
            build(made / name, package)


def _fetch_all(sets: list[ToolSet]) -> None:
    """Downloads the modules that the sets' packages need, and no others; the build reports any failure."""
    for tool in sets:
        _fetch(tool)


def _fetch(tool: ToolSet) -> None:
    argv = ["list", "-deps", "-tags", ",".join(tool.tags), *(package for package, _ in tool.packages)]
    golang.go(*argv, cwd=source_dir(tool), env=_go_env(tool), check=False)


def module_dir(tool_name: str) -> Path:
    """The unpacked source of a set's main module, at the pinned version (for charts, CRDs and the like)."""
    tool = load().tools[tool_name]
    found = golang.go("list", "-m", "-json", tool.module, cwd=source_dir(tool), env=_go_env(tool), check=False)
    folder = json.loads(found.stdout).get("Dir") if found.returncode == 0 else None
    if not folder or not Path(folder).is_dir():
        hint = "check the network, then try again"
        golang.go("mod", "download", cwd=source_dir(tool), env=_go_env(tool), hint=hint)
        found = golang.go("list", "-m", "-json", tool.module, cwd=source_dir(tool), env=_go_env(tool))
        folder = json.loads(found.stdout)["Dir"]
    return Path(folder)


def _completed(tool: ToolSet, work: Path) -> Path:
    """A copy of the set in `work` that takes its main module from a copy of the source: patched, with what is added.

    Raises TrainyardError when a patch doesn't fit.
    """
    source, folder = work / "source", work / "set"
    run(["cp", "-r", "--no-preserve=mode", module_dir(tool.name), source])
    patches.apply_all(source_dir(tool) / PATCHES, source, f"the source of {tool.name}")
    if (source_dir(tool) / ADDED).is_dir():
        shutil.copytree(source_dir(tool) / ADDED, source, dirs_exist_ok=True)
    shutil.copytree(source_dir(tool), folder, ignore=shutil.ignore_patterns(ADDED, PATCHES, "*_test.go"))
    with (folder / "go.mod").open("a") as file:
        file.write(f"\nreplace {tool.module} => ../{source.name}\n")
    return folder


def _go_env(tool: ToolSet) -> dict[str, str]:
    """Variables that restrict Go to what go.mod and go.sum pin."""
    arch = {"GOARCH": tool.arch} if tool.arch else {}
    return {"CGO_ENABLED": "1" if tool.cgo else "0", "GOFLAGS": "-mod=readonly -buildvcs=false", **arch, **golang.env()}


def _ldflags(tool: ToolSet) -> str:
    stamps = [f"-X {variable}={value}" for variable, value in sorted(tool.stamp.items())]
    return " ".join(["-s", "-w", *stamps])


def _reason(error: CommandError) -> str:
    lines = [line for line in error.output.splitlines() if line.strip() and "downloading" not in line]
    return lines[-1].strip() if lines else f"code {error.returncode}"


def _hint(error: CommandError) -> str:
    if "no space left" in error.output:
        return (
            "free some space (go env GOCACHE names the folder that fills) or set GOCACHE and TRAINYARD_CACHE elsewhere"
        )
    if "checksum mismatch" in error.output:
        return (
            "upstream has moved a tag: Go's proxy keeps what go.sum pins, so set "
            "GOPROXY=https://proxy.golang.org,direct and `go clean -modcache`, then run the same command again"
        )
    if any(sign in error.output for sign in NETWORK_SIGNS):
        return "the network is unreachable: check `go env GOPROXY`, then retry; finished builds are kept"
    return "run the same command again for the whole output, or `trainyard doctor`"
