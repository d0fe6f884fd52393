"""Both verdicts of each example: as it is, and after lint's hints were followed by script."""

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
LATER = ("TY216", "TY217")  # rights and objects that lack when it runs: what a server can be asked about
OPERATORS = ("TY109",)  # of training-operator, whose own admission is not asked here


@dataclass(frozen=True)
class LintVerdict:
    """What lint says: codes of its errors that refuse, and of those that let it be taken and then fail."""

    refuses: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> LintVerdict:
        """Errors by what they say; a template that may not be there counts, though it is a warning."""
        codes = registry()
        bad = [one for one in findings if one.severity is Severity.ERROR or one.code in LATER]
        later = {one.code for one in bad if codes[one.code].run or one.code in LATER}
        return cls(tuple(sorted({one.code for one in bad} - later)), tuple(sorted(later)))


@dataclass(frozen=True)
class Result:
    """One example. `edits`: how many lint's hints took, `by_hand` those of them that only a person can decide."""

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
    again: int = 0  # edits that lint would ask for after its hints were followed once: none

    @property
    def taken(self) -> bool:
        """Whether both let it pass after the hints."""
        return not self.lint_after.refuses and not self.server_after.refused

    @property
    def differences(self) -> list[str]:
        """Where lint and the server don't agree, as it is and after the hints."""
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
    """Asks both, twice.

    Where the server fills in what the platform knows, lint judges what that makes of the objects, by the same contract.
    An image in several places counts once then.
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
    """Each object and what lint says of it."""
    for obj in objects:
        yield obj, list(lint.manifest(obj, site))


def follow(objects: list[Object], site: Site, contract: Contract, fills: bool = False) -> tuple[int, int]:
    """Does once what lint says: how many edits it took, and those of them that a person decides."""
    edits = by_hand = 0
    images: set[str] = set()
    for obj, findings in _findings(objects, site):
        fixer = Fixer(obj, contract, site.team())
        # What else is said is said of the object as it is with its fields under their right names.
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
    """The image that a finding is about."""
    match = NAMED.search(finding.reason)
    return match[1] if match else finding.reason


def typical(results: Iterable[Result], of: Callable[[Result], int]) -> int:
    """The median of a figure; 0 of nothing."""
    found = [of(one) for one in results]
    return int(median(found)) if found else 0
