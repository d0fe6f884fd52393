"""Checks of rights, disk space, limits, compilers and the source of images."""

import re

from trainyard_dev.doctor.finding import Finding, Wanted
from trainyard_dev.doctor.probes import Machine
from trainyard_dev.tools import golang

COLD_GB, WARM_GB, MEMORY_GB = 40, 12, 8
LIMITS = {"nofile": 16384, "nproc": 8192}
PYTHON = (3, 11)


def check(m: Machine, wanted: Wanted) -> list[Finding]:
    return [_root(m), *(_limit(m, name) for name in LIMITS), _disk(m), _memory(m), _python(m), _go(m), _gcc(m),
            _images(m, wanted), _debootstrap(m, wanted.images != "pull"), _data(m)]  # fmt: skip


def _root(m: Machine) -> Finding:
    if m.uid() == 0:
        return Finding("rights", "root", "yes", "ok")
    return Finding("rights", "root", f"no, user {m.uid()}", "missing", "sudo -E make e2e")


def _limit(m: Machine, name: str) -> Finding:
    value, least = m.hard_limit(name), LIMITS[name]
    shown = "unlimited" if value is None else str(value)
    if value is None or value >= least:
        return Finding("rights", f"hard limit {name}", shown, "ok")
    hint = f"echo '* hard {name} 65536' >> /etc/security/limits.conf   # then log in again"
    return Finding("rights", f"hard limit {name}", f"{shown}; four nodes need {least}", "warn", hint)


def _disk(m: Machine) -> Finding:
    built, total = m.tools_built()
    warm = built == total
    need, free = (WARM_GB if warm else COLD_GB), m.free_gb()
    shown = f"{free:.0f} GB free in {m.cache()}; a {'warm' if warm else 'cold'} run needs {need}"
    if free >= need:
        return Finding("room", "disk", shown, "ok")
    return Finding("room", "disk", shown, "missing", "export TRAINYARD_CACHE=/a/larger/disk   # or free some space")


def _memory(m: Machine) -> Finding:
    text = m.read("/proc/meminfo")
    sizes = {name: int(kib) * 1024 / 1e9 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if total is None:
        return Finding("room", "memory", "can't be read", "warn")
    shown = f"{total:.0f} GB" + ("" if free is None else f", {free:.0f} GB available")
    if total < MEMORY_GB:
        return Finding(
            "room", "memory", f"{shown}; {MEMORY_GB} GB required", "missing", "use a machine with more memory"
        )
    if free is not None and free < MEMORY_GB / 2:
        return Finding(
            "room", "memory", f"{shown}; little is free", "warn", "ps aux --sort=-rss | head   # and stop what you can"
        )
    return Finding("room", "memory", shown, "ok")


def _python(m: Machine) -> Finding:
    version = ".".join(map(str, m.python()))
    if m.python()[:2] < PYTHON:
        return Finding(
            "software", "Python", f"{version}; 3.11 or newer required", "missing", "apt-get install -y python3"
        )
    if not m.has_venv():
        return Finding("software", "Python", f"{version} without venv", "missing", "apt-get install -y python3-venv")
    return Finding("software", "Python", version, "ok")


def _go(m: Machine) -> Finding:
    built, total = m.tools_built()
    need = m.go_needed()
    said = m.run("go", "version")[1] if m.which("go") else ""
    found = re.search(r"go(\d+(?:\.\d+)+)", said)
    version = found[1] if found else "absent"
    shown = f"{version}; {built} of {total} tool sets are in the cache"
    if found and _number(version) >= _number(need):
        return Finding("software", "Go", shown, "ok")
    if found and _number(version) >= golang.FETCHES_SINCE and m.variable("GOTOOLCHAIN") != "local":
        return Finding("software", "Go", f"{shown}; it downloads Go {need} for modules that require it", "ok")
    if built == total:
        return Finding("software", "Go", shown, "not needed")
    return Finding(
        "software", "Go", f"{shown}; Go {need} required", "missing", f"install Go {need} or newer from go.dev/dl"
    )


def _gcc(m: Machine) -> Finding:
    hint = "apt-get install -y --no-install-recommends gcc libc6-dev make"
    for name in ("gcc", "make"):
        if not m.which(name):
            return Finding("software", "C compiler", f"no {name}", "missing", hint)
    if not m.exists("/usr/include/stdlib.h"):
        return Finding("software", "C compiler", "gcc without the C library's headers", "missing", hint)
    said = m.run("gcc", "-dumpfullversion")[1]
    return Finding("software", "C compiler", f"gcc {said}", "ok")


def _images(m: Machine, wanted: Wanted) -> Finding:
    if wanted.images != "pull":
        return Finding("software", "images", "built here", "ok")
    if m.registry():
        return Finding("software", "images", "registry.k8s.io answers: pulled", "ok")
    hint = "make e2e IMAGES=build   # or set HTTPS_PROXY"
    return Finding("software", "images", "registry.k8s.io is unreachable", "missing", hint)


def _debootstrap(m: Machine, building: bool) -> Finding:
    path = m.which("debootstrap")
    if path:
        return Finding("software", "debootstrap", path, "ok")
    if not building:
        return Finding("software", "debootstrap", "absent", "not needed")
    hint = "apt-get install -y --no-install-recommends debootstrap"
    return Finding("software", "debootstrap", "missing, and images are built here", "missing", hint)


def _data(m: Machine) -> Finding:
    if m.data() and m.exists(m.data()):
        return Finding("software", "MNIST", f"searched in {m.data()}", "ok")
    what = f"TRAINYARD_DATA names {m.data()}, which does not exist" if m.data() else "TRAINYARD_DATA is not set"
    return Finding(
        "software",
        "MNIST",
        f"{what}: Debian's Fashion-MNIST is used",
        "warn",
        "export TRAINYARD_DATA=/folder/of/datasets",
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
