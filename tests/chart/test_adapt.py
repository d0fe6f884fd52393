"""Upstream's charts are changed in their copies, and only as long as they are what was looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.chart import adapt, adapt_rbac, parts

CSI = """\
kind: ClusterRole
metadata:
  name: a
{{ include "nfs.labels" . | indent 2 }}
rules:
  - apiGroups: [""]
    resources: ["nodes"]
    verbs: ["get"]
  - apiGroups: [""]
    resources: ["secrets"]
    verbs: ["get"]
---
"""


@pytest.fixture
def volcano(tmp_path: Path) -> Path:
    """A copy of Volcano's templates that hold roles."""
    folder = tmp_path / "volcano"
    (folder / "templates").mkdir(parents=True)
    for role in adapt_rbac.ROLES:
        (folder / role.file).write_text((parts.chart_folder("volcano") / role.file).read_text())
    return folder


def test_rights_are_replaced_and_the_rest_stays(volcano: Path) -> None:
    before = {role.file: (volcano / role.file).read_text() for role in adapt_rbac.ROLES}
    adapt_rbac.adapt_rbac("volcano", volcano)
    for role in adapt_rbac.ROLES:
        text = (volcano / role.file).read_text()
        assert text.count("\nrules:\n") >= 1
        head, tail = before[role.file].split("\nrules:\n")[0], before[role.file].split("\nroleRef:\n")[-1]
        assert text.startswith(head)
        assert text.endswith(tail)


@pytest.mark.parametrize("role", adapt_rbac.ROLES, ids=lambda role: role.component)
def test_a_release_with_other_rights_stops_the_packaging(volcano: Path, role: adapt_rbac.Role) -> None:
    file = volcano / role.file
    file.write_text(file.read_text().replace("rules:\n", 'rules:\n  - apiGroups: ["new"]\n', 1))
    with pytest.raises(TrainyardError, match=f"changed the rights of its {role.component} .*compare them with"):
        adapt_rbac.adapt_rbac("volcano", volcano)


def test_rights_are_rules_of_rbac() -> None:
    for role in adapt_rbac.ROLES:
        text = (adapt_rbac.RIGHTS / f"{role.component}.yaml").read_text()
        plain = "\n".join(line for line in text.splitlines() if not line.startswith("{{"))
        for rules in yaml.safe_load_all(plain):
            for rule in rules:
                assert {"apiGroups", "resources", "verbs"} <= set(rule) <= {
                    "apiGroups", "resources", "verbs", "resourceNames",
                }, role.component  # fmt: skip


def test_an_adapted_line_that_is_gone_stops_the_packaging(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    change = adapt.DEVICE_PLUGIN[0]
    (tmp_path / change.file).write_text("kind: DaemonSet\n")
    for entry in adapt.DROPPED["nvidia-device-plugin"]:
        (tmp_path / entry).mkdir(parents=True)
    with pytest.raises(TrainyardError, match="a line that is adapted is there 0 times"):
        adapt.adapt("nvidia-device-plugin", tmp_path)


def test_the_csi_driver_gets_no_secrets_and_keeps_its_helpers_to_itself(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "rbac.yaml").write_text(CSI)
    adapt.adapt("csi-driver-nfs", tmp_path)
    text = (tmp_path / "templates" / "rbac.yaml").read_text()
    assert "secrets" not in text
    assert '"nodes"' in text
    assert '"csi-nfs.labels"' in text


def test_a_csi_driver_with_other_rules_stops_the_packaging(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "rbac.yaml").write_text(CSI.replace('["secrets"]', '["secrets", "nodes"]'))
    with pytest.raises(TrainyardError, match="its rule for Secrets isn't where it was"):
        adapt.adapt("csi-driver-nfs", tmp_path)
