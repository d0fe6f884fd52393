"""The verdicts of lint and the server on each example: as it is, and after lint's hints were applied by script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from trainyard.contract import Contract
from trainyard.pipelines.lint import files
from trainyard.policy import lint
from trainyard.policy.lint.codes import registry
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.report import Site
from trainyard_dev.corpus.asking import MemberClient, ServerVerdict
from trainyard_dev.corpus.fixes import PERSONAL, Fixer
from trainyard_dev.corpus.sources import Example

Object = dict[str, Any]
TRAINING = "training-operator"
SHAPE = "TY105"
IMAGE, NAMED = "p17", re.compile(r"image (\S+) is neither")
LATER = ("TY216", "TY217")  # rights and objects missing when it runs, which a server can be queried for
OPERATORS = ("TY109",)  # of training-operator, whose own admission doesn't run here


@dataclass(frozen=True)
class LintVerdict:
    """Lint's verdict: codes of errors that predict a refusal, and of those that predict a failure when it runs."""

    refuses: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> LintVerdict:
        """Sorts errors by code; a template that may be missing counts, though it is a warning."""
        codes = registry()
        bad = [one for one in findings if one.severity is Severity.ERROR or one.code in LATER]
        later = {one.code for one in bad if codes[one.code].run or one.code in LATER}
        return cls(tuple(sorted({one.code for one in bad} - later)), tuple(sorted(later)))


@dataclass(frozen=True)
class Result:
    """The result of an example. `edits`: edits by lint's hints; `by_hand`: those that only a person can decide."""

    group: str
    file: str
    digest: str
    kinds: tuple[str, ...]
    lint: LintVerdict
    server: ServerVerdict
    edits: int
    by_hand: int
    lint_after: LintVerdict
    server_after: ServerVerdict
    again: int = 0  # edits that lint would still ask for after its hints were followed once; should be none

    @property
    def taken(self) -> bool:
        """Whether both lint and the server accept it after the hints."""
        return not self.lint_after.refuses and not self.server_after.refused

    @property
    def differences(self) -> list[str]:
        """The differences between lint and the server, as it is and after the hints."""
        pairs = (("as it is", self.lint, self.server), ("after its hints", self.lint_after, self.server_after))
        return [
            f"{when}: {what}" for when, heard, said in pairs for what in _differ(heard, said, self.group == TRAINING)
        ]


def _differ(heard: LintVerdict, said: ServerVerdict, training: bool) -> list[str]:
    found = []
    if said.refused and not heard.refuses:
        found.append(f"lint passes, the server refuses: {', '.join(said.refusals)}")
    if not said.refused and set(heard.refuses) - (set(OPERATORS) if training else set()):
        found.append(f"lint refuses, the server accepts: {', '.join(heard.refuses)}")
    if bool(said.lacks) != bool(set(heard.fails) & set(LATER)) and not heard.refuses:
        found.append(
            f"lint: {', '.join(heard.fails) or 'nothing'}; the server lacks: {', '.join(said.lacks) or 'nothing'}"
        )
    return found


def judge(example: Example, site: Site, asker: MemberClient) -> Result:
    """Judges an example by both lint and the server, before and after the hints.

    Where the server fills in defaults of the platform, lint judges the filled-in objects, by the same contract.
    An image in several places then counts once.
    """
    objects = example.objects()
    kinds = tuple(dict.fromkeys(str(one.get("kind")) for one in objects))
    readable = bool(objects) and all(isinstance(one.get("kind"), str) for one in objects)
    as_it_is = LintVerdict.of(files.check_text(example.text, example.name, site))
    server = asker.ask(objects) if readable else ServerVerdict(("schema",))
    if not readable:
        return Result(example.group, example.name, example.digest, kinds, as_it_is, server, 0, 0, as_it_is, server)
    edits, by_hand = follow(objects, site, asker.contract, asker.fills)
    after = LintVerdict.of([one for _, findings in _findings(objects, site) for one in findings])
    said = asker.ask(objects)
    again, _ = follow(objects, site, asker.contract, asker.fills)
    return Result(
        example.group, example.name, example.digest, kinds, as_it_is, server, edits, by_hand, after, said, again
    )


def _findings(objects: list[Object], site: Site) -> Iterator[tuple[Object, list[Finding]]]:
    """Each object and lint's findings about it."""
    for obj in objects:
        yield obj, list(lint.manifest(obj, site))


def follow(objects: list[Object], site: Site, contract: Contract, fills: bool = False) -> tuple[int, int]:
    """Applies lint's hints once; returns the number of edits, and of those that a person has to decide."""
    edits = by_hand = 0
    images: set[str] = set()
    for obj, findings in _findings(objects, site):
        fixer = Fixer(obj, contract, site.team())
        # Other findings are about the object with its fields under their right names.
        for one in sorted(findings, key=lambda found: found.code != SHAPE):
            if one.severity is not Severity.ERROR:
                continue
            count = fixer.fix(one)
            if fills and one.code == IMAGE and count:
                known, name = len(images), _image(one)
                images.add(name)
                count = len(images) - known
            edits += count
            by_hand += count if one.code in PERSONAL else 0
    return edits, by_hand


def _image(finding: Finding) -> str:
    """The image that a finding names."""
    match = NAMED.search(finding.reason)
    return match[1] if match else finding.reason


def typical(results: Iterable[Result], of: Callable[[Result], int]) -> int:
    """The median of a figure; 0 without results."""
    found = [of(one) for one in results]
    return int(median(found)) if found else 0
