"""Splits the command line of mpirun or horovodrun into options and program."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MPIRUN, HOROVODRUN = ("mpirun", "mpiexec"), ("horovodrun",)
STARTERS = ("bash", "env", "nice", "nohup", "sh", "time", "timeout")  # programs that start another program
# Canonical options and their number of values. Open MPI accepts one or two hyphens for every long option.
_MPI = {
    "np": 1, "n": 1, "c": 1, "N": 1, "npernode": 1, "ppn": 1, "H": 1, "host": 1, "hostfile": 1, "machinefile": 1,
    "default-hostfile": 1, "x": 1, "wdir": 1, "wd": 1, "bind-to": 1, "map-by": 1, "rank-by": 1, "mca": 2, "gmca": 2,
    "omca": 2, "prtemca": 2, "pmixmca": 2, "output-filename": 1, "output": 1, "prefix": 1, "timeout": 1, "tune": 1,
    "stdin": 1, "path": 1, "display": 1, "report-bindings": 0, "tag-output": 0, "timestamp-output": 0, "q": 0, "v": 0,
    "oversubscribe": 0, "nooversubscribe": 0, "allow-run-as-root": 0, "display-map": 0, "quiet": 0, "verbose": 0,
}  # fmt: skip
_HOROVOD = {
    "np": 1, "num-proc": 1, "H": 1, "hosts": 1, "hostfile": 1, "p": 1, "ssh-port": 1, "i": 1, "ssh-identity-file": 1,
    "network-interface": 1, "network-interfaces": 1, "start-timeout": 1, "disable-cache": 0, "verbose": 0, "mpi": 0,
    "tcp": 0, "fusion-threshold-mb": 1, "cycle-time-ms": 1, "cache-capacity": 1, "timeline-filename": 1, "autotune": 0,
    "log-level": 1, "num-nccl-streams": 1,
}  # fmt: skip
SAME = {
    "n": "np", "c": "np", "num-proc": "np", "N": "npernode", "ppn": "npernode", "host": "H", "hosts": "H",
    "machinefile": "hostfile", "default-hostfile": "hostfile", "wd": "wdir",
}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """An option by its canonical name, with its values and as it was written."""

    name: str
    values: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """A command in three parts: launcher, options, program. `unknown`: the first unsupported option."""

    starter: str
    options: tuple[Option, ...]
    program: tuple[str, ...]
    unknown: str = ""

    def last(self, name: str) -> str:
        """The value of the option's last occurrence; "" without one."""
        found = [one.values[0] for one in self.options if one.name == name and one.values]
        return found[-1] if found else ""


def starts_ranks(command: Sequence[str]) -> bool:
    """Whether the command is mpirun, mpiexec or horovodrun."""
    return bool(command) and _starter(command[0]) in (*MPIRUN, *HOROVODRUN)


def is_behind(programs: Sequence[str], command: Sequence[str]) -> bool:
    """Whether a shell, or another program that starts programs, starts one of these."""
    if not command or _starter(command[0]) not in STARTERS:
        return False
    words = (part for word in command[1:] for part in re.split(r"[\s;&|()]+", word))
    return any(_starter(word) in programs for word in words)


def split(command: Sequence[str]) -> Split:
    """Parses the options of a command that `starts_ranks`, up to the first that is unknown or lacks its value."""
    starter = _starter(command[0])
    arity: Mapping[str, int] = _HOROVOD if starter in HOROVODRUN else _MPI
    found: list[Option] = []
    at = 1
    while at < len(command) and command[at].startswith("-") and len(command[at]) > 1:
        written, equals, value = command[at].partition("=")
        name = written.lstrip("-")
        count = arity.get(name, -1)
        values = [value] if equals else list(command[at + 1 : at + 1 + count])
        end = at + 1 if equals else at + 1 + count
        if count < 0 or len(values) != count:
            return Split(starter, tuple(found), tuple(command[at:]), written)
        found.append(Option(SAME.get(name, name), tuple(values), tuple(command[at:end])))
        at = end
    return Split(starter, tuple(found), tuple(command[at:]))


def _starter(word: str) -> str:
    return word.rpartition("/")[2]
