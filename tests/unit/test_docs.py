"""Documents keep up with the code: links, commands, options, verbs and files that they name exist."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from trainyard.cli import trainyard
from trainyard.paths import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text() for path in DOCUMENTS}
VERBS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[name]):
        if not target.startswith("http"):
            assert (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", TEXTS)
def test_commands_and_options_exist(name: str) -> None:
    for line in re.findall(
        r"(?:bin/)?trainyard ((?:chart|cluster|doctor|e2e|images|tools|verify)\b[^`|#\n]*)", TEXTS[name]
    ):
        words = shlex.split(line.replace("…", ""))
        context, command = click.Context(trainyard), trainyard
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words.pop(0))
            assert found, line
            command = found
        options = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            assert not word.startswith("-") or word.partition("=")[0] in options, line


@pytest.mark.parametrize("name", TEXTS)
def test_make_verbs_exist(name: str) -> None:
    for words in re.findall(r"(?:^ {4}|`)make ((?:[a-z][a-z0-9-]*)(?: [a-z][a-z0-9-]*)*)", TEXTS[name], re.M):
        for verb in words.split():
            assert verb in VERBS, f"make {words}"


@pytest.mark.parametrize("name", TEXTS)
def test_files_exist(name: str) -> None:
    tops = "charts|docs|images|manifests|scripts|tests|tools|bin"
    for path in re.findall(rf"`((?:{tops})/[\w./-]+)`", TEXTS[name]):
        assert (ROOT / path).exists(), path


def test_every_profile_is_described() -> None:
    for profile in (ROOT / "charts/trainyard/profiles").glob("*.yaml"):
        assert f"| `{profile.stem}` |" in TEXTS["README.md"]


def test_every_example_job_is_described() -> None:
    for job in (ROOT / "manifests/jobs").glob("*.yaml"):
        assert f"| `{job.name}` |" in TEXTS["README.md"]


def test_messages_that_are_explained_are_really_given() -> None:
    table = re.findall(r"^\| `([^`]+)` \|", TEXTS["docs/troubleshooting.md"].partition("## While building")[0], re.M)
    code = "\n".join(path.read_text() for path in (ROOT / "scripts/trainyard").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    assert len(table) > 5
    for message in table:
        for part in message.split("…"):
            assert part.strip() in code, message
