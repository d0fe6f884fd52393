"""A machine for the doctor: it has all that is needed, until a test removes something."""

from dataclasses import dataclass, field

from trainyard_dev.doctor import examine, probes
from trainyard_dev.doctor.finding import Finding, Wanted

OPTIONS = [
    "OVERLAY_FS",
    "BRIDGE",
    "BRIDGE_NETFILTER",
    "VETH",
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
class Box(probes.Machine):
    """A machine that has all that is needed; a test removes something."""

    user: int = 0
    programs: set[str] = field(
        default_factory=lambda: {"podman", "runc", "iptables", "debootstrap", "go", "gcc", "make", "modprobe"}
    )
    answers: dict[str, tuple[int, str]] = field(
        default_factory=lambda: {
            "podman info": (0, "4.3.1"),
            "docker -v": (0, "Docker version 28.1.0, build 4d8c241"),
            "docker buildx version": (0, "github.com/docker/buildx v0.23.0 28c90ea"),
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
    variables: dict[str, str] = field(default_factory=dict)

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

    def registry(self) -> bool:  # type: ignore[override]
        return self.reached

    def tools_built(self) -> tuple[int, int]:
        return self.built

    def go_needed(self) -> str:
        return "1.26.0"

    def data(self) -> str:
        return "/data"

    def variable(self, name: str) -> str:
        return self.variables.get(name, "")


def find(box: Box, check: str, wanted: Wanted | None = None) -> Finding:
    (found,) = [f for f in examine(box, wanted) if f.check == check]
    return found


def kernel_without(box: Box, *options: str) -> Box:
    box.files["/proc/config.gz"] = "".join(f"CONFIG_{name}=y\n" for name in OPTIONS if name not in options)
    return box
