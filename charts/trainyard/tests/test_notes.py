"""What Helm prints after an installation: the components, warnings, and a checklist of commands at the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from trainyard.chart import helm
from trainyard.paths import ROOT
from trainyard_dev import tools

TEAMS = ROOT / "manifests" / "gitops" / "values" / "teams.yaml"
Notes = Callable[..., str]
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data: {notes: {{ include "notes" . | toJson }}}
"""


@pytest.fixture(scope="module")
def notes(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Notes:
    """The notes for some values: `helm template` leaves notes out, so a copy of the chart has them in a ConfigMap."""
    copy = tmp_path_factory.mktemp("notes") / "trainyard"
    shutil.copytree(chart, copy)
    text = (copy / "templates/NOTES.txt").read_text()
    (copy / "templates/_notes.tpl").write_text(f'{{{{- define "notes" -}}}}{text}{{{{- end -}}}}')
    (copy / "templates/notes.yaml").write_text(CONFIG_MAP)

    def made(*sets: str, teams: bool = False) -> str:
        words = [word for one in sets for word in ("--set", one)] + (["--values", str(TEAMS)] if teams else [])
        profile = copy / "profiles/kind.yaml"
        shown = helm.call(
            "template", "trainyard", copy, "-n", helm.NAMESPACE, "--kube-version", tools.tested_kubernetes().number,
            "--values", profile, *words, "--show-only", "templates/notes.yaml",
        )  # fmt: skip
        return str(yaml.safe_load(shown)["data"]["notes"])

    return made


def test_notes_end_in_a_checklist_of_commands(notes: Notes) -> None:
    for text in (notes(), notes(teams=True)):
        head, _, checklist = text.partition("\nCheck it:\n")
        assert "trainyard-system" in head
        lines = checklist.strip("\n").splitlines()
        assert len(lines) >= 6
        assert all(line.startswith(("  [ ] kubectl ", "  [ ] helm ")) for line in lines)


def test_notes_name_teams_and_how_to_ask_what_they_may(notes: Notes) -> None:
    assert "none yet" in notes()
    text = notes(teams=True)
    assert "vision, speech" in text
    assert "kubectl get resourcequota,networkpolicy,pvc -n vision" in text
    assert "kubectl auth can-i create pytorchjobs.kubeflow.org -n vision --as someone --as-group vision-members" in text


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["nodePrep.enabled=false"], "nodePrep.enabled is false"),
        (["nfs.podNetworks=null"], "List the cluster's pod networks in nfs.podNetworks"),
        (["policies.modes.root-secrets=warn"], "policies of mode warn refuse nothing: root-secrets."),
        (["policies.modes.root-secrets=off"], "policies of mode off refuse nothing: root-secrets."),
    ],
)
def test_what_is_open_is_reported(sets: list[str], words: str, notes: Notes) -> None:
    assert words not in " ".join(notes().split())
    assert words in " ".join(notes(*sets).split())


def test_a_team_without_a_way_to_the_api_server_is_reported(notes: Notes) -> None:
    words = "WARNING: the API server's address is unknown"
    assert words in notes(teams=True)
    ends = ["global.contract.network.apiServer[0].cidr=192.0.2.10/32", "global.contract.network.apiServer[0].port=6443"]
    assert words not in notes(*ends, teams=True)
