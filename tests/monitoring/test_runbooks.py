"""Every alert has a page of what to do, which begins with commands whose names exist."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from trainyard.cli import COMMANDS
from trainyard.paths import ROOT
from trainyard_dev.monitoring import rules

PAGES = sorted(rules.RUNBOOKS.glob("*.md"))
KUBECTL = {"annotate", "cordon", "create", "debug", "describe", "exec", "get", "logs", "port-forward", "rollout", "top"}
BUILT_IN = {
    "configmap", "cronjob", "deploy", "ds", "events", "job", "jobs", "mutatingwebhookconfigurations", "networkpolicies",
    "node", "nodes", "pod", "pods", "pvc", "secret", "secrets", "sts", "svc", "validatingwebhookconfigurations",
}  # fmt: skip
PROGRAMS = {"curl", "helm", "kubeadm", "ssh"}
# What a reader puts in: the alert's labels say it.
PLACES = {"CHART", "CLAIM", "CONTAINER", "JOB", "NODE", "POD", "QUEUE", "TEAM"}


def commands(page: Path) -> list[list[str]]:
    """The lines that the page begins with, in words."""
    _, _, body = page.read_text().partition("\n\n")
    lines = re.match(r"(?: {4}.*\n)+", body)
    assert lines, f"{page.name} does not begin with commands"
    return [shlex.split(line) for line in lines[0].splitlines()]


@cache
def shipped() -> str:
    """What charts and components say, with the release called trainyard."""
    folders = ("charts", "scripts/trainyard", "scripts/trainyard_agent", "manifests")
    files = [file for name in folders for file in (ROOT / name).rglob("*") if file.suffix in (".yaml", ".tpl", ".py")]
    text = "\n".join(file.read_text() for file in files if not file.match("charts/*/tests/*"))
    text = re.sub(r"\{\{-? ?\$?\.?\(?[\w.$() ]*Release\.Name\)? ?\}\}", "trainyard", text)
    # Names that helpers put together: (list . "exporter") and printf "%s-exporter".
    return re.sub(r'\(list [$.]+ "([a-z-]+)"\)|"%s-([a-z-]+)"', r"trainyard-\1\2", text)


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert [page.stem for page in PAGES] == sorted(rules.names())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_begins_with_commands_that_exist(page: Path) -> None:
    assert page.read_text().startswith(f"# {page.stem}\n\n")
    for words in commands(page):
        if words[0] == "trainyard":
            assert words[1] in COMMANDS, words  # tests/unit/docs looks at its options
        elif words[0] == "kubectl":
            assert words[1] in KUBECTL, words
            if words[1] in ("get", "describe"):
                _resources(words[2])
        else:
            assert words[0] in PROGRAMS, words


def _resources(word: str) -> None:
    if word.startswith("-"):
        return
    for resource in word.partition("/")[0].split(","):
        plural, _, group = resource.partition(".")
        assert resource in BUILT_IN or (group and group in shipped() and plural in shipped()), resource


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_ours_and_places_are_known(page: Path) -> None:
    text = page.read_text()
    for name in set(re.findall(r"(?<![\w/-])(trainyard-[a-z0-9-]+)", text)) - {"trainyard-system"}:
        part = name.removeprefix("trainyard-")
        assert name in shipped() or re.search(rf'name: "?{part}"?\b|"{part}"', shipped()), name
    for words in commands(page):
        for place in re.findall(r"(?<![\w.])[A-Z]{3,}(?![\w.])", " ".join(words)):
            assert place in PLACES, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_says_what_it_means_and_what_to_do(page: Path) -> None:
    assert re.findall(r"^## (.+)$", page.read_text(), re.M) == ["What it means", "What to do"]
    for alert in re.findall(r"monitoring\.alerts\.rules\.(\w+)", page.read_text()):
        assert alert in rules.names()
