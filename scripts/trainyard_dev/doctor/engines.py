"""Checks of the container engine, its runtime and the cgroups."""

from trainyard_dev.doctor.finding import Finding, Wanted
from trainyard_dev.doctor.probes import Machine
from trainyard_dev.engine import BUILDX, INSTALL, is_shim, needs_buildx

GROUP = "container engine"
ASK = {
    "docker": ("docker", "version", "--format", "{{.Server.Version}}"),
    "podman": ("podman", "info", "--format", "{{.Version.Version}}"),
}
HELPERS = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/local/lib/podman", "/usr/local/libexec/podman")


def answers(m: Machine, name: str) -> tuple[bool, str]:
    """Whether an engine answers, and its version or error message."""
    if not m.which(name):
        return False, "not installed"
    if name == "docker" and is_shim(m.run("docker", "-v")[1]):
        return False, "another program under Docker's name, such as podman's"
    code, said = m.run(*ASK[name])
    last = said.strip().splitlines()[-1] if said.strip() else "no answer"
    return (code == 0 and bool(said.strip())), last


def chosen(m: Machine, wanted: Wanted) -> str:
    """The engine that would be used: the requested one, else the first of Docker and podman that answers, if any."""
    names = ("docker", "podman") if wanted.engine == "auto" else (wanted.engine,)
    return next((name for name in names if answers(m, name)[0]), "")


def check(m: Machine, wanted: Wanted) -> list[Finding]:
    use = chosen(m, wanted)
    found = [_engine(m, name, use, wanted) for name in ("docker", "podman")]
    found.append(_runtime(m, use))
    if use == "docker":
        found.append(_buildx(m))
    if use == "podman":
        found += [_helper(m, name) for name in ("netavark", "aardvark-dns")]
    found.append(_program(m, "iptables", use == "podman"))
    return found


def _engine(m: Machine, name: str, use: str, wanted: Wanted) -> Finding:
    works, said = answers(m, name)
    if works:
        return Finding(GROUP, name, f"{said}, answers" + (", used" if name == use else ""), "ok")
    dead = f"installed, but does not answer: {said}" if m.which(name) else said
    if use or wanted.engine not in ("auto", name):
        return Finding(GROUP, name, dead, "not needed")
    if name == "docker":
        hint = "systemctl start docker" if m.which(name) else "install Docker, or podman as below"
        return Finding(GROUP, name, dead, "missing" if wanted.engine == name or m.which(name) else "not needed", hint)
    return Finding(GROUP, name, dead, "missing", "podman info   # and fix its errors" if m.which(name) else INSTALL)


def cgroups(m: Machine) -> str:
    """The version of cgroups: ``v2``, ``v1`` or ``hybrid``."""
    if m.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "v2"
    return "hybrid" if m.exists("/sys/fs/cgroup/unified") else "v1"


def _runtime(m: Machine, use: str) -> Finding:
    mode = cgroups(m)
    names = [name for name in ("runc", "crun") if m.which(name)]
    shown = f"{' and '.join(names) or 'none'}, cgroup {mode}"
    if use == "docker":
        return Finding(GROUP, "runtime", f"Docker's own, cgroup {mode}", "ok")
    if not names or (names == ["crun"] and mode != "v2"):
        why = "; crun refuses mixed cgroup mounts" if names else ""
        return Finding(GROUP, "runtime", shown + why, "missing", "apt-get install -y --no-install-recommends runc")
    return Finding(GROUP, "runtime", shown, "ok")


def _buildx(m: Machine) -> Finding:
    version = m.run("docker", "version", "--format", "{{.Client.Version}}")[1].strip()
    code, said = m.run("docker", "buildx", "version")
    if code == 0:
        return Finding(GROUP, "buildx", said.splitlines()[-1] if said else "yes", "ok")
    if not needs_buildx(version):
        return Finding(GROUP, "buildx", f"missing; docker {version} builds without it", "not needed")
    return Finding(GROUP, "buildx", f"missing; docker {version} cannot build images without it", "missing", BUILDX)


def _helper(m: Machine, name: str) -> Finding:
    path = next((f"{folder}/{name}" for folder in HELPERS if m.exists(f"{folder}/{name}")), "") or m.which(name)
    if path:
        return Finding(GROUP, name, path, "ok")
    return Finding(GROUP, name, "absent", "missing", f"apt-get install -y --no-install-recommends {name}")


def _program(m: Machine, name: str, needed: bool) -> Finding:
    path = m.which(name)
    if path or not needed:
        return Finding(GROUP, name, path or "absent", "ok" if path else "not needed")
    return Finding(GROUP, name, "absent", "missing", f"apt-get install -y --no-install-recommends {name}")
