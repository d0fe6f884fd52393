"""The doctor on machines that lack one thing or another."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner

from trainyard.doctor import cli, gpus, kernel, probes, table
from trainyard.doctor.examine import examine
from trainyard.doctor.finding import Finding, Wanted, healthy

OPTIONS = [
    "OVERLAY_FS",
    "BRIDGE",
    "BRIDGE_NETFILTER",
    "VETH",
    "VXLAN",
    "NF_CONNTRACK",
    "NF_NAT",
    "IP_SET",
    "NETFILTER_XT_SET",
    "NETFILTER_XT_TARGET_NFQUEUE",
    "NFS_FS",
    "FUSE_FS",
]
DEAD = (1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
MODULES = f"/lib/modules/{probes.kernel_release()}"


@dataclass
class Box:
    """A machine that has all that is needed; a test takes something away."""

    user: int = 0
    programs: set[str] = field(
        default_factory=lambda: {"podman", "runc", "iptables", "debootstrap", "go", "gcc", "make", "modprobe"}
    )
    answers: dict[str, tuple[int, str]] = field(
        default_factory=lambda: {
            "podman info": (0, "4.3.1"),
            "go version": (0, "go version go1.26.1 linux/amd64"),
            "gcc -dumpfullversion": (0, "12.2.0"),
        }
    )
    paths: set[str] = field(
        default_factory=lambda: {
            "/dev/fuse",
            "/usr/include/stdlib.h",
            "/usr/lib/podman/netavark",
            "/usr/lib/podman/aardvark-dns",
            "/data",
            MODULES,
        }
    )
    files: dict[str, str] = field(
        default_factory=lambda: {
            "/proc/config.gz": "".join(f"CONFIG_{name}=y\n" for name in OPTIONS),
            "/proc/filesystems": "nodev\toverlay\nnodev\tnfs\nnodev\tnfs4\n",
            "/proc/meminfo": "MemTotal:       24684092 kB\nMemAvailable:   20000000 kB\n",
            "/proc/sys/fs/inotify/max_user_instances": "1024\n",
        }
    )
    free: float = 100.0
    limits: dict[str, int | None] = field(default_factory=lambda: {"nofile": None, "nproc": 96365})
    reached: bool = False
    built: tuple[int, int] = (0, 18)
    version: tuple[int, int, int] = (3, 11, 7)
    venv: bool = True

    def uid(self) -> int:
        return self.user

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self.programs else None

    def run(self, *argv: str) -> tuple[int, str]:
        return next((a for words, a in self.answers.items() if " ".join(argv).startswith(words)), (1, "no"))

    def exists(self, path: str) -> bool:
        return path in self.paths

    def read(self, path: str) -> str:
        return self.files.get(path, "")

    def free_gb(self) -> float:
        return self.free

    def cache(self) -> str:
        return "/cache"

    def hard_limit(self, name: str) -> int | None:
        return self.limits[name]

    def python(self) -> tuple[int, int, int]:
        return self.version

    def has_venv(self) -> bool:
        return self.venv

    def registry(self) -> bool:
        return self.reached

    def tools_built(self) -> tuple[int, int]:
        return self.built

    def go_needed(self) -> str:
        return "1.26.0"

    def data(self) -> str:
        return "/data"


def find(box: Box, check: str, wanted: Wanted | None = None) -> Finding:
    (found,) = [f for f in examine(box, wanted) if f.check == check]
    return found


def kernel_without(box: Box, *options: str) -> Box:
    box.files["/proc/config.gz"] = "".join(f"CONFIG_{name}=y\n" for name in OPTIONS if name not in options)
    return box


def test_a_good_machine_lacks_nothing() -> None:
    findings = examine(Box())
    assert healthy(findings)
    assert {f.state for f in findings} <= {"ok", "not needed"}
    assert len({f.check for f in findings}) == len(findings)


@pytest.mark.parametrize(
    ("change", "check", "mend"),
    [
        ({"user": 1000}, "root", "sudo"),
        ({"free": 3.0, "built": (18, 18)}, "disk", "TRAINYARD_CACHE"),
        ({"free": 12.0}, "disk", "TRAINYARD_CACHE"),
        ({"version": (3, 9, 2)}, "Python", "python3"),
        ({"venv": False}, "Python", "python3-venv"),
        ({"programs": {"runc", "iptables", "debootstrap", "go", "gcc", "make"}}, "podman", "apt-get install"),
        ({"answers": {"podman info": (125, "Error: cannot find newuidmap")}}, "podman", "podman info"),
    ],
)
def test_what_stops_a_run(change: dict[str, Any], check: str, mend: str) -> None:
    box = Box(**change)
    finding = find(box, check)
    assert finding.state == "missing"
    assert mend in finding.mend
    assert not healthy(examine(box))


@pytest.mark.parametrize(
    ("program", "check"),
    [
        ("debootstrap", "debootstrap"),
        ("gcc", "C compiler"),
        ("make", "C compiler"),
        ("go", "Go"),
        ("iptables", "iptables"),
    ],
)
def test_a_missing_program(program: str, check: str) -> None:
    box = Box()
    box.programs.discard(program)
    assert find(box, check).state == "missing"
    assert find(box, check).mend


def test_every_missing_or_warning_has_a_mend() -> None:
    bare = Box(user=7, programs=set(), answers={}, paths=set(), files={}, free=1, limits={"nofile": 1024, "nproc": 100})
    findings = examine(bare)
    assert not healthy(findings)
    for finding in findings:
        if finding.state == "missing" or (finding.state == "warn" and "can't be read" not in finding.found):
            assert finding.mend, finding


# ---- the engine


def test_dead_docker_socket_alone_is_missing() -> None:
    box = Box()
    box.programs = (box.programs - {"podman"}) | {"docker"}
    box.answers["docker version"] = DEAD
    finding = find(box, "docker")
    assert finding.state == "missing"
    assert "Is the docker daemon running" in finding.found
    assert finding.mend == "systemctl start docker"


def test_dead_docker_socket_beside_podman_does_no_harm() -> None:
    box = Box()
    box.programs.add("docker")
    box.answers["docker version"] = DEAD
    assert find(box, "docker").state == "not needed"
    assert "used" in find(box, "podman").found
    assert healthy(examine(box))
    assert find(box, "docker", Wanted(engine="docker")).state == "missing"


def test_docker_is_taken_first() -> None:
    box = Box()
    box.programs.add("docker")
    box.answers["docker version"] = (0, "28.1.0")
    assert find(box, "docker").found == "28.1.0, answers, used"
    assert find(box, "podman").found == "4.3.1, answers"
    box.programs.discard("runc")
    assert find(box, "runtime").state == "ok"


@pytest.mark.parametrize(
    ("paths", "mode", "state"),
    [
        ({"/sys/fs/cgroup/cgroup.controllers"}, "v2", "ok"),
        ({"/sys/fs/cgroup/unified"}, "hybrid", "missing"),
        (set(), "v1", "missing"),
    ],
)
def test_crun_alone_needs_cgroup_v2(paths: set[str], mode: str, state: str) -> None:
    box = Box()
    box.programs = (box.programs - {"runc"}) | {"crun"}
    box.paths |= paths
    assert find(box, "runtime").state == state
    assert mode in find(box, "runtime").found


@pytest.mark.parametrize("helper", ["netavark", "aardvark-dns"])
def test_podman_network_helpers(helper: str) -> None:
    box = Box()
    box.paths.discard(f"/usr/lib/podman/{helper}")
    assert find(box, helper).state == "missing"


# ---- the kernel


@pytest.mark.parametrize(("name", "option"), [(row[0], row[1]) for row in kernel.NEEDED])
def test_a_kernel_without_a_feature(name: str, option: str) -> None:
    box = kernel_without(Box(), option)
    finding = find(box, name)
    assert finding.state == "missing"
    assert f"CONFIG_{option}" in finding.mend
    box.paths.discard(MODULES)
    assert "loads no modules" in find(box, name).mend


def test_a_feature_as_module() -> None:
    box = Box()
    box.files["/proc/config.gz"] = box.files["/proc/config.gz"].replace("VXLAN=y", "VXLAN=m")
    assert find(box, "vxlan").state == "missing"
    box.answers["modprobe -n -q vxlan"] = (0, "")
    assert find(box, "vxlan").state == "ok"
    box.answers.pop("modprobe -n -q vxlan")
    box.paths.add("/sys/module/vxlan")
    assert find(box, "vxlan").state == "ok"


def test_an_unknown_kernel_only_warns() -> None:
    box = Box()
    box.files["/proc/config.gz"] = ""
    box.programs.discard("modprobe")
    assert find(box, "vxlan").state == "warn"
    assert healthy(examine(box))


def test_fuse_is_needed_only_without_an_nfs_client() -> None:
    box = Box()
    box.paths.discard("/dev/fuse")
    assert find(box, "/dev/fuse").state == "not needed"
    box.files["/proc/filesystems"] = "nodev\toverlay\n"
    kernel_without(box, "NFS_FS")
    assert find(box, "/dev/fuse").state == "missing"
    assert find(box, "NFS client").state == "warn"
    box.paths.add("/dev/fuse")
    assert healthy(examine(box))


def test_no_ipset_means_policies_are_not_enforced() -> None:
    finding = find(kernel_without(Box(), "IP_SET"), "network policies")
    assert finding.state == "warn"
    assert "not be enforced" in finding.found


def test_inotify() -> None:
    box = Box()
    box.files["/proc/sys/fs/inotify/max_user_instances"] = "128\n"
    assert find(box, "inotify instances").state == "ok"
    box.user = 1000
    assert find(box, "inotify instances").state == "warn"


# ---- room, limits, software


def test_disk_depends_on_the_cache() -> None:
    assert find(Box(free=12, built=(18, 18)), "disk").state == "ok"
    assert "a warm run needs 12" in find(Box(free=12, built=(18, 18)), "disk").found


@pytest.mark.parametrize(
    ("total", "free", "state"),
    [(4_000_000, 3_000_000, "missing"), (16_000_000, 1_000_000, "warn"), (16_000_000, 9_000_000, "ok")],
)
def test_memory(total: int, free: int, state: str) -> None:
    box = Box()
    box.files["/proc/meminfo"] = f"MemTotal: {total} kB\nMemAvailable: {free} kB\n"
    assert find(box, "memory").state == state


def test_limits() -> None:
    assert find(Box(limits={"nofile": 1024, "nproc": None}), "hard limit nofile").state == "warn"


def test_go_is_not_needed_once_all_is_built() -> None:
    box = Box(built=(18, 18))
    box.programs.discard("go")
    assert find(box, "Go").state == "not needed"
    old = Box()
    old.answers["go version"] = (0, "go version go1.9.7 linux/amd64")
    assert find(old, "Go").state == "missing"


def test_images_are_pulled_or_built() -> None:
    assert "built here" in find(Box(), "images").found
    assert "pulled" in find(Box(reached=True), "images").found
    assert find(Box(), "images", Wanted(images="pull")).state == "missing"
    without = Box(reached=True)
    without.programs.discard("debootstrap")
    assert find(without, "debootstrap").state == "not needed"
    assert find(without, "debootstrap", Wanted(images="build")).state == "missing"


# ---- GPUs


def gpu_box(toolkit: str = "1.17.8", runtime: str = "nvidia", config: str | None = None) -> Box:
    box = Box()
    box.programs |= {"nvidia-smi", "nvidia-ctk", "docker"}
    box.answers |= {
        "nvidia-smi -L": (0, "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)"),
        "nvidia-ctk --version": (0, f"NVIDIA Container Toolkit CLI version {toolkit}"),
        "docker version": (0, "28.1.0"),
        "docker info": (0, runtime),
    }
    good = f"{gpus.MOUNTS} = true\n{gpus.ENVIRONMENT} = false\n"
    box.files[gpus.CONFIG] = good if config is None else config
    return box


def test_no_gpu_is_well_unless_one_was_asked_for() -> None:
    assert find(Box(), "GPUs").state == "ok"
    assert find(Box(), "GPUs", Wanted(gpu="real")).state == "missing"


def test_real_gpus_well_set_up() -> None:
    box = gpu_box()
    assert find(box, "GPUs").found == "2 of NVIDIA H200"
    assert healthy(examine(box))
    assert find(box, "GPUs", Wanted(gpu="mock")).state == "missing"


def test_known_faults_of_real_gpus() -> None:
    new = find(gpu_box(toolkit="1.18.0"), "container toolkit")
    assert new.state == "warn"
    assert "/proc/driver/nvidia: not mounted" in new.found
    assert find(gpu_box(runtime="runc"), "default runtime").mend == gpus.CONFIGURE
    commented = gpu_box(config=f"#{gpus.MOUNTS} = true\n")
    assert find(commented, "GPUs by volume mount").state == "missing"
    assert find(commented, "GPUs by variable for all").state == "warn"
    on_podman = gpu_box()
    on_podman.answers["docker version"] = DEAD
    assert find(on_podman, "default runtime").state == "warn"
    broken = gpu_box()
    broken.answers["nvidia-smi -L"] = (9, "NVIDIA-SMI has failed because it couldn't communicate with the driver")
    broken.paths.add("/proc/driver/nvidia/gpus")
    assert find(broken, "GPUs").state == "missing"


# ---- the command


def test_table_reads_well() -> None:
    text = table.render(examine(Box(user=1000)), gpus.KNOWN)
    assert text.splitlines()[0] == "Rights"
    assert "mend: sudo -E make e2e" in text
    assert "Missing: root" in text.splitlines()[-1]
    assert "nvkind#61" in text
    assert "\x1b" not in text
    assert "\x1b[31mmissing" in table.render(examine(Box(user=1000)), colour=True)
    assert table.verdict(examine(Box())) == "Everything that `make e2e` needs is here."


@pytest.mark.parametrize(("user", "code"), [(0, 0), (1000, 1)])
def test_command_and_its_exit_code(monkeypatch: pytest.MonkeyPatch, user: int, code: int) -> None:
    monkeypatch.setattr(cli, "Host", lambda: Box(user=user))
    result = CliRunner().invoke(cli.doctor, ["-o", "json"])
    assert result.exit_code == code
    data = json.loads(result.output)
    assert data["ok"] == (code == 0)
    assert {"group", "check", "found", "state", "mend"} == set(data["checks"][0])
    assert CliRunner().invoke(cli.doctor, []).exit_code == code
    assert CliRunner().invoke(cli.doctor, ["--images", "fetch"]).exit_code == 2


def test_the_real_machine_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes.Host, "registry", lambda self: False)
    monkeypatch.setattr(probes.Host, "tools_built", lambda self: (0, 1))
    findings = examine(probes.Host())
    assert {"root", "disk", "podman", "overlay", "GPUs"} <= {f.check for f in findings}


def test_probes_never_raise(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host = probes.Host()
    assert host.run("no-such-program-here")[0] == 127
    assert host.read(str(tmp_path)) == ""
    (tmp_path / "x.gz").write_text("no gzip")
    assert host.read(str(tmp_path / "x.gz")) == ""
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path / "not" / "yet"))
    assert host.free_gb() > 0
    assert not (tmp_path / "not").exists()
