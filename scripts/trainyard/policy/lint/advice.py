"""Commands that fill in what a file lacks: printed once for each file, below its findings."""

from collections.abc import Collection, Iterator, Sequence

from trainyard.kinds import registry
from trainyard.policy.lint.finding import Finding, Severity

# Codes that a command can fix from the contract. `adopt` is mentioned if this program has it.
BY_SUBMIT = frozenset(("p03", "p16", "p21", "TY601"))
BY_ADOPT = BY_SUBMIT | frozenset(
    ("p01", "p02", "p05", "p06", "p07", "p12", "p13", "p17", "p22", "p24", "TY408", "TY602")
)
ADOPTED = frozenset({kind.kind for kind in registry.KINDS} | {"Pod", "PersistentVolumeClaim"})


def lines(findings: Sequence[Finding], commands: Collection[str]) -> Iterator[str]:
    """Yields one line for each file that a command would fix, at least in part.

    Args:
        commands: commands of this program.
    """
    errors = [one for one in findings if one.severity is Severity.ERROR]
    for file in dict.fromkeys(one.file for one in errors):
        mine = [one for one in errors if one.file == file]
        if _any(mine, BY_SUBMIT, {"Workflow"}):
            yield f"{file}: `trainyard submit {file}` fills in account, queue, deadline and security context by itself"
        if "adopt" in commands and _any(mine, BY_ADOPT, ADOPTED):
            yield f"{file}: `trainyard adopt {file}` fills in the platform's defaults"


def _any(findings: Sequence[Finding], codes: Collection[str], kinds: Collection[str]) -> bool:
    return any(one.code in codes and one.task.partition("/")[0] in kinds for one in findings)
