"""The QEMU guest: its initial files, how it is started, and how its output is judged."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.e2e.checks import kernel_nfs
from trainyard_dev.e2e.sites.guest import initramfs, machine, packages

Program = Callable[[str, str], Path]


def module(folder: Path, name: str, *needs: str) -> Path:
    path = folder / f"{name}.ko"
    path.write_bytes(b"\x7fELF junk\0license=GPL\0depends=" + ",".join(needs).encode() + b"\0name=x\0")
    return path


@pytest.fixture
def kernel(cache: Path) -> packages.Kernel:
    """A cache that holds an unpacked kernel."""
    root = cache / "guest" / "root"
    modules = root / "lib" / "modules" / "6.1.0-9-cloud-amd64"
    for folder in (modules, root / "boot", root / "bin"):
        folder.mkdir(parents=True)
    (root / "boot" / "vmlinuz-6.1.0-9-cloud-amd64").write_bytes(b"kernel")
    shutil.copy("/bin/true", root / "bin" / "busybox")
    for name, needs in {
        "virtio": (),
        "virtio_pci": ("virtio",),
        "virtio-net": ("virtio",),
        "nfsv4": ("nfs", "sunrpc"),
        "nfs": ("sunrpc",),
        "sunrpc": (),
        "unwanted": (),
    }.items():
        module(modules, name, *needs)
    return packages.find()


def test_modules_come_after_what_they_need(kernel: packages.Kernel) -> None:
    names = [path.stem for path in initramfs.in_order(kernel.modules, initramfs.WANTED)]
    assert names == ["virtio", "virtio_pci", "virtio-net", "sunrpc", "nfs", "nfsv4"]


def test_a_kernel_without_nfs_is_reported(tmp_path: Path) -> None:
    given = [module(tmp_path, "nfsv4", "sunrpc")]
    with pytest.raises(TrainyardError, match="no module sunrpc, which nfsv4 needs"):
        initramfs.in_order(given, ("nfsv4",))


def unpacked(content: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and data of each entry, read as the format says: headers, names and data begin at multiples of four."""
    found, place = {}, 0
    while True:
        assert content[place : place + 6] == b"070701"
        fields = [int(content[at : at + 8], 16) for at in range(place + 6, place + 110, 8)]
        begin = place + 110
        name = content[begin : begin + fields[11] - 1].decode()
        begin += fields[11] + -(begin + fields[11]) % 4
        if name == "TRAILER!!!":
            return found
        found[name] = (fields[1], content[begin : begin + fields[6]])
        place = begin + fields[6] + -(begin + fields[6]) % 4


def test_the_archive_holds_what_was_added() -> None:
    archive = initramfs.Archive()
    archive.add("bin", 0o40755)
    archive.add("bin/odd", 0o100755, b"12345")
    archive.add("init", 0o100755, b"#!/bin/sh\n")
    assert unpacked(archive.finish()) == {
        "bin": (0o40755, b""),
        "bin/odd": (0o100755, b"12345"),
        "init": (0o100755, b"#!/bin/sh\n"),
    }


def test_the_initramfs_holds_init_tools_and_modules(kernel: packages.Kernel, tmp_path: Path) -> None:
    files = unpacked(initramfs.build(kernel, tmp_path).read_bytes())
    assert files["init"][1] == (initramfs.HERE / "init.sh").read_bytes()
    assert files["bin/locks"][1][:4] == b"\x7fELF"
    assert files["bin/busybox"][0] & 0o777 == 0o755
    assert [name for name in files if name.startswith("modules/")][-1] == "modules/005-nfsv4.ko"
    assert "unwanted" not in str(list(files))


def test_the_init_script_is_a_shell_script() -> None:
    subprocess.run(["sh", "-n", initramfs.HERE / "init.sh"], check=True)


@pytest.mark.parametrize(
    ("mode", "wanted"), [("flock", "refused, then granted"), ("range", "both clients hold the lock")]
)
def test_the_lock_program_tells_both_ends(tmp_path: Path, mode: str, wanted: str) -> None:
    """On one local file locks by flock conflict within a process, and record locks never do."""
    locks, held = tmp_path / "locks", tmp_path / "file"
    subprocess.run(["gcc", "-o", locks, initramfs.HERE / "locks.c"], check=True)
    seen = subprocess.run([locks, mode, held, held], capture_output=True, text=True, check=False)
    assert (seen.stdout.strip(), seen.returncode) == (wanted, 0 if mode == "flock" else 1)
    missing = subprocess.run([locks, mode, held, tmp_path / "no" / "file"], capture_output=True, text=True, check=False)
    assert missing.returncode == 1
    assert "No such file" in missing.stdout


QEMU = r"""
for word in "$@"; do
  case "$word" in file:*console) console=${word#file:};; file:*facts) facts=${word#file:};; esac
done
echo "$*" > "$NOTE"
"""


@pytest.fixture
def qemu(kernel: packages.Kernel, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """`qemu(script)` pretends to be QEMU; the script has the files $console and $facts."""
    monkeypatch.setenv("NOTE", str(tmp_path / "note"))
    return lambda script: program("qemu-system-x86_64", QEMU + script)


def test_facts_are_read_from_the_second_port(qemu: Callable, tmp_path: Path) -> None:
    qemu(r'printf "noise\r\nFACT 4.1.flock refused, then granted\r\nFACT empty\r\nFACT end 9.1\r\n" > "$facts"')
    assert machine.boot({"NFS_PORT": "4711"}) == {"4.1.flock": "refused, then granted", "empty": "", "end": "9.1"}
    assert "-accel tcg" in (tmp_path / "note").read_text()
    assert "NFS_PORT=4711" in (tmp_path / "note").read_text()


def test_a_guest_that_stops_half_way_shows_its_console(qemu: Callable) -> None:
    qemu('echo "Kernel panic - not syncing" > "$console"; echo "FACT kernel 6.1" > "$facts"')
    with pytest.raises(TrainyardError, match=r"stopped half-way.*Kernel panic - not syncing"):
        machine.boot({})


def test_a_guest_that_hangs_is_ended(qemu: Callable) -> None:
    qemu('echo "FACT kernel 6.1" > "$facts"; exec sleep 60')
    with pytest.raises(TrainyardError, match=r"did not finish within 1 s.*FACT kernel 6.1"):
        machine.boot({}, timeout=1)


def test_without_qemu_the_check_is_skipped_by_reason(
    kernel: packages.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "qemu-system-x86_64 is not installed" in machine.missing()


def test_without_the_kernel_the_check_is_skipped_by_reason(cache: Path, program: Program) -> None:
    program("qemu-system-x86_64", "exit 0")
    program("apt-cache", "echo 'linux-image-cloud-amd64'")
    reason = machine.missing()
    assert reason.startswith("the guest's kernel is not available: no package linux-image-cloud-amd64 is known here")
    assert not (cache / "guest" / "root").exists()


def test_the_packages_are_unpacked_once(cache: Path, program: Program, tmp_path: Path) -> None:
    program("apt-cache", "echo '  Depends: linux-image-6.1.0-9-cloud-amd64'")
    program("apt-get", f'echo "$*" >> {tmp_path}/apt; shift; for name; do touch "$name.deb"; done')
    made = '"$3/boot/vmlinuz-1" "$3/bin/busybox" "$3/lib/modules/1/nfs.ko"'
    program("dpkg", f'for file in {made}; do mkdir -p "${{file%/*}}"; touch "$file"; done')
    assert packages.find().version == "1"
    assert packages.find().root == cache / "guest" / "root"
    assert (tmp_path / "apt").read_text() == "download linux-image-6.1.0-9-cloud-amd64 busybox-static\n"


GOOD = {
    "kernel": "6.1",
    "data": "abc",
    "foreign-export": "mount: mounting 10.0.2.2:/shared on /c failed: No such file or directory",
}
for version in kernel_nfs.VERSIONS:
    GOOD |= {
        f"{version}.options": f"rw,vers={version},hard",
        f"{version}.flock": "refused, then granted",
        f"{version}.range-lock": "refused, then granted",
        f"{version}.readonly-export-read": kernel_nfs.MARK,
        f"{version}.unmounted": "0",
        **{f"{version}.{name}": "abc" for name in ("read", "read-by-other", "readonly-mount-read")},
        **{f"{version}.readonly-{what}-write": "touch: /c/new: Read-only file system" for what in ("export", "mount")},
    }


def test_a_good_guest_has_no_problems() -> None:
    assert kernel_nfs.judge(GOOD) == []


@pytest.mark.parametrize("name", [name for name in GOOD if name not in ("kernel", "data")])
@pytest.mark.parametrize("seen", [None, "something else"])
def test_each_fact_that_differs_is_a_problem(name: str, seen: str | None) -> None:
    facts = GOOD | {name: seen} if seen else {key: value for key, value in GOOD.items() if key != name}
    [error] = kernel_nfs.judge(facts)
    assert error.startswith(f"{name}: found {seen or 'nothing'!r}, expected ")


def test_an_export_that_is_open_to_all_is_a_problem() -> None:
    assert kernel_nfs.judge(GOOD | {"foreign-export": "nothing"})
    assert kernel_nfs.judge(GOOD | {"4.2.failed": "client B can't mount /kernel-check"})
