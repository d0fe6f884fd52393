"""Which version is older: a wrong answer hides a hole or invents one."""

from __future__ import annotations

import itertools

import pytest

from trainyard_dev.audit import ordering

# Each from oldest to newest.
ORDERS = {
    "Go": ["v0.0.0-20230506025312-76913a9fd5c6", "v0.0.0-20260212201848-7aac2a2c5b7c", "v3.6.0-rc.2", "v3.6.0-rc.10",
           "v3.6.0-rc.10.1", "v3.6.0", "v3.7.2", "v3.7.14", "v24.0.9+incompatible"],
    "PyPI": ["1.22", "2.6.0rc1", "2.6.0", "2.6.0.post1", "2.10"],
    "Debian:bookworm": ["1.0~rc1-1", "1.0-1~deb12u1", "1.0-1", "1.0-1+deb12u2", "1.0-1+deb12u10", "1.0a-1", "1.0+b-1",
                        "1.10-1", "1:0.9-1"],
}  # fmt: skip


@pytest.mark.parametrize("ecosystem", ORDERS)
def test_versions_are_ordered_as_their_ecosystem_does(ecosystem: str) -> None:
    key = ordering.key(ecosystem)
    for older, newer in itertools.combinations(ORDERS[ecosystem], 2):
        assert key(older) < key(newer), f"{older} is older than {newer}"
        assert not key(newer) < key(older)


@pytest.mark.parametrize(("ecosystem", "one", "other"), [
    ("Go", "v1.2.0", "1.2"), ("Go", "go1.26.8", "1.26.8"), ("PyPI", "2.6", "2.6.0"),
    ("Debian:bookworm", "1.0", "0:1.0-0"),
])  # fmt: skip
def test_two_spellings_of_a_version_are_alike(ecosystem: str, one: str, other: str) -> None:
    key = ordering.key(ecosystem)
    assert key(one) == key(other)


@pytest.mark.parametrize(("ecosystem", "text"), [("Go", "RELEASE.2025-02-28"), ("PyPI", "new"), ("Debian:x", "a:1")])
def test_what_is_no_version_is_refused(ecosystem: str, text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        ordering.key(ecosystem)(text)
