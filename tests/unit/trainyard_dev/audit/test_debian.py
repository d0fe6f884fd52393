"""Packages of images against Debian's archive and tracker, out of answers as Debian gives them."""

from __future__ import annotations

import hashlib
import json
import lzma
from typing import Any

import pytest

from trainyard_dev.audit import cli, debian
from trainyard_dev.audit.report import Report, judge

STATUS = """\
Package: libssl3
Status: install ok installed
Source: openssl
Version: 3.0.16-1~deb12u1

Package: libc6
Status: install ok installed
Source: glibc (2.36-9+deb12u10)
Version: 2.36-9+deb12u10+b1
Description: the C library
 Package: no field

Package: gone
Status: deinstall ok config-files
Version: 1.0
"""
PACKAGES = """\
Package: libssl3
Version: 3.0.17-1~deb12u3

Package: libssl3
Version: 3.0.17-1~deb12u2

Package: libc6
Version: 2.36-9+deb12u9

Package: unheld
Version: 9
"""


def state(status: str, urgency: str = "low", suite: str = "bookworm", **further: str) -> dict[str, Any]:
    return {"releases": {suite: {"status": status, "urgency": urgency, **further}}}


TRACKER: dict[str, Any] = {
    "openssl": {
        "CVE-1": state("resolved", fixed_version="3.0.17-1~deb12u2"),
        "CVE-2": state("open", "not yet assigned"),
        "CVE-3": state("open", nodsa="Minor issue"),
        "CVE-4": state("open", "unimportant"),
        "CVE-5": state("resolved", fixed_version="0"),
        "CVE-6": state("open", "high", "trixie"),
    },
    "glibc": {
        "CVE-7": state("resolved", "high", fixed_version="2.36-9+deb12u10"),
        "CVE-8": state("resolved", "high", fixed_version="2.36-9+deb12u11"),
    },
}


def image() -> debian.Contents:
    packages, origins = debian.installed(STATUS)
    return debian.Contents("platform", "2026-11-20", "bookworm", packages, origins)


def served(url: str, body: bytes | None) -> bytes:
    packed = lzma.compress(PACKAGES.encode())
    if url.endswith("/Release"):
        digest = hashlib.sha256(packed).hexdigest()
        sums = f"SHA256:\n 00 1 a\n {digest} {len(packed)} main/binary-amd64/Packages.xz\n"
        return f"Date: Fri, 20 Nov 2026 10:11:12 UTC\n{sums}".encode()
    return packed if url.endswith(".xz") else json.dumps(TRACKER).encode()


def audit(fetch: Any) -> Report:
    result, known = Report(), []
    parts = cli._debian([image()], known, result, fetch, "https://archive.example/debian-security")
    result.findings, _ = judge(parts, known, [], cli.datetime.date.min)
    return result


def test_installed_packages_and_what_they_are_built_from_are_read() -> None:
    packages, origins = debian.installed(STATUS)
    assert packages == {"libssl3": "3.0.16-1~deb12u1", "libc6": "2.36-9+deb12u10+b1"}
    assert origins == {"libssl3": ("openssl", "3.0.16-1~deb12u1"), "libc6": ("glibc", "2.36-9+deb12u10")}


def test_what_lacks_a_security_update_is_found_and_what_has_it_is_not() -> None:
    found = {(one.name, one.advisory.id, one.fixed) for one in audit(served).findings}
    assert ("libssl3", "bookworm-security", "3.0.17-1~deb12u3") in found
    assert not any(name == "libc6" for name, _, _ in found)


def test_the_tracker_tells_holes_that_count_in_this_release() -> None:
    found = {(one.name, one.advisory.id, one.fixed) for one in audit(served).findings if one.advisory.id[:4] == "CVE-"}
    assert found == {
        ("openssl", "CVE-1", "3.0.17-1~deb12u2"),
        ("openssl", "CVE-2", ""),
        ("glibc", "CVE-8", "2.36-9+deb12u11"),
    }


def test_an_index_that_was_changed_on_its_way_is_not_believed() -> None:
    def changed(url: str, body: bytes | None) -> bytes:
        return lzma.compress(b"Package: libssl3\nVersion: 1\n") if url.endswith(".xz") else served(url, body)

    found = audit(changed)
    assert [one.why for one in found.open] == ["main/binary-amd64/Packages.xz is not what Release says of it"]


@pytest.mark.parametrize("silent", ["security-tracker", "archive.example"])
def test_who_does_not_answer_is_named_and_the_other_is_asked_all_the_same(silent: str) -> None:
    def fetch(url: str, body: bytes | None) -> bytes:
        if silent in url:
            raise OSError(-2, "Name or service not known")
        return served(url, body)

    found = audit(fetch)
    assert len(found.open) == 1 and found.open[0].why == "Name or service not known"
    assert found.findings


class Engine:
    """An engine whose one image has these files."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files, self.removed = files, False

    def __call__(self, *argv: Any, check: bool = True) -> Any:
        from types import SimpleNamespace

        answer = {"image": "2026-11-20T01:02:03Z\n", "create": "box\n"}.get(argv[0], "")
        self.removed = self.removed or argv[0] == "rm"
        if argv[0] == "cp":
            path = str(argv[1]).partition(":")[2]
            if path not in self.files:
                return SimpleNamespace(returncode=1, stdout="")
            argv[2].write_text(self.files[path])
        return SimpleNamespace(returncode=0, stdout=answer)


def test_an_image_is_read_without_running_it_and_nothing_stays() -> None:
    engine: Any = Engine({debian.STATUS: STATUS, debian.RELEASE: 'NAME=x\nVERSION_CODENAME="bookworm"\n'})
    found = debian.contents(engine, "platform", "ref")
    assert found is not None and (found.suite, found.made, len(found.packages)) == ("bookworm", "2026-11-20", 2)
    assert engine.removed


def test_an_image_without_debian_has_no_contents() -> None:
    engine: Any = Engine({})
    assert debian.contents(engine, "etcd", "ref") is None and engine.removed
