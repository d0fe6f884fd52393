"""The doctor on kernels that lack a feature."""

import pytest
from doctor_box import MODULES, Box, find, kernel_without

from trainyard_dev.doctor import examine, kernel
from trainyard_dev.doctor.finding import healthy


@pytest.mark.parametrize(("name", "option"), [(row[0], row[1]) for row in kernel.NEEDED])
def test_a_kernel_without_a_feature(name: str, option: str) -> None:
    box = kernel_without(Box(), option)
    finding = find(box, name)
    assert finding.state == "missing"
    assert f"CONFIG_{option}" in finding.hint
    box.paths.discard(MODULES)
    assert "loads no modules" in find(box, name).hint


def test_a_feature_as_module() -> None:
    box = Box()
    box.files["/proc/config.gz"] = box.files["/proc/config.gz"].replace("VETH=y", "VETH=m")
    assert find(box, "veth").state == "missing"
    box.answers["modprobe -n -q veth"] = (0, "")
    assert find(box, "veth").state == "ok"
    box.answers.pop("modprobe -n -q veth")
    box.paths.add("/sys/module/veth")
    assert find(box, "veth").state == "ok"


def test_an_unknown_kernel_only_warns() -> None:
    box = Box()
    box.files["/proc/config.gz"] = ""
    box.programs.discard("modprobe")
    assert find(box, "veth").state == "warn"
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
    assert "not enforced" in finding.found


def test_inotify() -> None:
    box = Box()
    box.files["/proc/sys/fs/inotify/max_user_instances"] = "128\n"
    assert find(box, "inotify instances").state == "ok"
    box.user = 1000
    assert find(box, "inotify instances").state == "warn"
