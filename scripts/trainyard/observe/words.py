"""Finds in the last lines of a program's output why it failed."""

import re
from collections.abc import Iterable, Sequence

PREFIX, HINT = "error: ", "hint: "  # format of errors of our own steps and trainers
TRACEBACK = "Traceback (most recent call last)"
MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")  # module before an exception's name
ERROR = re.compile(r"^[\w.]*(Error|Exception|Interrupt|Exit)\b")
FRAME = re.compile(r"^(Traceback \(most recent call last\):|\s{2,}(File \".*|.+))$")
# Frames of Python's and kfp's own programs, which are the same in every failure.
OTHERS_FRAME = re.compile(r'  File "(<frozen runpy>|[^"]*/kfp/dsl/executor(_main)?\.py)", line \d+')
# Prefixes of a rank's lines from torch (`[rank3]: `), torchrun (`[default3]:`) and mpirun (`[1,3]<stderr>:`).
LABEL = re.compile(r"^\[[a-z]*\d+(,\d+)?\](<std(err|out)>)?: ?")
# Messages of ranks that lost another rank.
FOLLOWS = re.compile(
    r"Connection (closed|reset) by peer|Connection refused|Broken pipe|ChildFailedError|NCCL (error|communicator)"
)
SHOWN, LED = 5, 12


def reason(lines: Sequence[str]) -> str:
    """Reason of a failure in a program's last lines: its error line, the exception after a traceback, or 3 lines."""
    found = [line for line in map(_plain, lines) if line]
    own = [number for number, line in enumerate(found) if line.startswith(PREFIX)]
    if own:
        hints = [line.removeprefix(HINT) for line in found[own[-1] + 1 :][:1] if line.startswith(HINT)]
        return ". ".join([found[own[-1]].removeprefix(PREFIX), *hints])
    at = max((number for number, line in enumerate(found) if TRACEBACK in line), default=-1)
    if at >= 0:
        after = [line for line in found[at + 1 :] if not line.startswith((" ", "\t"))]
        if after:
            return MODULE.sub("", " | ".join(after[:3]))
    return " | ".join(line.strip() for line in found[-3:])


def last_words(lines: Iterable[str]) -> str:
    """The end of a rank's log without traceback frames: the last error that isn't a consequence of another rank's."""
    shown = [line for line in map(_plain, lines) if line and not FRAME.match(line)]
    errors = [line for line in shown if ERROR.match(line)]
    causes = [line for line in errors if not FOLLOWS.search(line)]
    return (causes or errors or [" | ".join(shown[-SHOWN:])])[-1]


def follows(words: str) -> bool:
    """Whether the words are empty, or those of a rank that lost another rank."""
    return not words or bool(FOLLOWS.search(words))


def leading_to(lines: Sequence[str], words: str) -> list[str]:
    """The lines of a log up to these words; up to its end if they aren't one of its lines.

    The streams of a container are not interleaved, so the error needn't be the last line of the log.
    """
    log = _without_frames(lines)
    found = [number for number, line in enumerate(log) if words and _plain(line).strip() == words]
    end = found[-1] + 1 if found else len(log)
    return log[max(0, end - LED) : end]


def quoted(lines: Iterable[str]) -> list[str]:
    """The end of a log, quoted below a failure; empty if there is none."""
    found = [f"  | {line}" for line in lines]
    return ["  the end of its log:", *found] if found else []


def _plain(line: str) -> str:
    return LABEL.sub("", line).rstrip()


def _without_frames(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in lines:
        inside = bool(OTHERS_FRAME.match(line)) or (inside and line.startswith("    "))
        if not inside:
            kept.append(line)
    return kept
