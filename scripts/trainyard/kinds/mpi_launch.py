"""Translates `horovodrun -np 16 -H server1:4,… python train.py` to an MPIJob: nodes, ranks per node, program."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds.mpi_words import HOROVODRUN, Split, is_behind, split, starts_ranks
from trainyard.kinds.spec import MPI

# Options of horovodrun that ranks read as variables. The platform decides on hosts, networks and timeouts.
ENV = {
    "cycle-time-ms": "HOROVOD_CYCLE_TIME",
    "cache-capacity": "HOROVOD_CACHE_CAPACITY",
    "timeline-filename": "HOROVOD_TIMELINE",
    "autotune": "HOROVOD_AUTOTUNE",
    "log-level": "HOROVOD_LOG_LEVEL",
    "num-nccl-streams": "HOROVOD_NUM_NCCL_STREAMS",
}
FUSION, MIB = "fusion-threshold-mb", 1 << 20
HOST_LINE = re.compile(r"^(?P<name>\S+?)(?:\s+.*?slots\s*=\s*(?P<slots>\d+).*|\s*:\s*(?P<count>\d+))?\s*$")
Settings = dict[str, Any]
NAMED = 3  # maximum number of hosts in the sentence


@dataclass(frozen=True)
class Size:
    """Number of nodes, and of ranks per node; 0 if the command doesn't specify it."""

    nodes: int
    processes: int


def translated(settings: Settings, folder: Path) -> tuple[Settings, str]:
    """The settings of the MPIJob that the command describes, and a sentence about them; "" if it describes none.

    Args:
        folder: folder that contains the host file.

    Raises:
        UsageError: the command can't be translated: unequal hosts, an option with another meaning here, or settings
            that contradict it.
    """
    command = list(settings.get("command") or ())
    if not starts_ranks(command):
        if not settings.get("image") and is_behind(HOROVODRUN, command):
            what = "no image of the platform has horovodrun: the platform starts the ranks"
            hint = "begin the command with horovodrun, which is translated, and set variables with --env"
            raise UsageError(what, where=_short(command), hint=hint)
        return settings, ""
    words = split(command)
    told = {one.name for one in words.options} & {"np", "npernode", "H", "hostfile"}
    horovod = words.starter in HOROVODRUN
    if words.unknown or not words.program:
        if not horovod and "H" not in told and "hostfile" not in told:
            return settings, ""  # mpirun has many more options, and runs unchanged
        what = f"{words.starter}'s option {words.unknown} can't be kept" if words.unknown else "no program is named"
        hint = "remove it" if words.unknown else "write the program after the options"
        raise UsageError(what, where=_short(command), hint=f"{hint}, or only --nodes, --processes and the program")
    if settings.get("framework", MPI) != MPI:
        what = f"{words.starter} starts ranks by MPI, but framework is {settings['framework']}"
        raise UsageError(what, where=_short(command), hint="remove framework or the launcher")
    if not told and not horovod:
        return {**settings, "framework": MPI}, ""
    hosts = _hosts(words, folder)
    size = _size(words, hosts, settings)
    own = {key: value for key, value in (("nodes", size.nodes), ("processes", size.processes)) if value}
    _bounded(own, words.starter)
    env = {**_env(words), **(settings.get("env") or {})}
    made: Settings = {**settings, **own, "framework": MPI, "command": _command(words, size)}
    return (made | {"env": env} if env else made), _sentence(words, hosts, size, settings)


def _bounded(own: Mapping[str, int], starter: str) -> None:
    """Raises UsageError for a number outside the schema's bounds. A step's image has no schema validator."""
    bounds = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))["properties"]
    for key, value in own.items():
        least, most = bounds[key]["minimum"], bounds[key]["maximum"]
        if not least <= value <= most:
            hint = f"use at least {least}" if value < least else f"use at most {most}"
            raise UsageError(f"{key} is {value}", where=starter, hint=hint)


def _command(words: Split, size: Size) -> list[str]:
    """The program alone, or mpirun with the options that the job does not express."""
    said = {"np", "npernode", "H", "hostfile", "x", "allow-run-as-root"}
    kept = [word for one in words.options if one.name not in said for word in one.words]
    if words.starter in HOROVODRUN or not kept:
        return list(words.program)
    return [words.starter, "-np", str(size.nodes * size.processes), *kept, *words.program]


def _hosts(words: Split, folder: Path) -> list[tuple[str, int]]:
    """Hosts and their slots, from -H or a host file in the folder; [] if none are named."""
    listed = words.last("H")
    lines = listed.split(",") if listed else []
    if name := words.last("hostfile"):
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            hint = "pass the hosts with -H, or use --nodes and --processes instead"
            raise UsageError(f"the hostfile {name} can't be read: {error}", hint=hint) from None
        lines += [line.partition("#")[0].strip() for line in text.splitlines()]
    found: dict[str, int] = {}
    for line in filter(None, lines):
        match = HOST_LINE.match(line)
        slots = int((match and (match["slots"] or match["count"])) or 1)
        if match is None or slots < 1:
            raise UsageError(f"invalid host: {line!r}", hint="write it as server1:4")
        found[match["name"]] = found.get(match["name"], 0) + slots
    return list(found.items())


def _size(words: Split, hosts: list[tuple[str, int]], settings: Settings) -> Size:
    """The size that the command specifies, checked against the settings. Raises UsageError."""
    ranks, each = _number(words, "np"), _number(words, "npernode")
    size = _of_hosts(words, hosts, ranks, each) if hosts else _of_ranks(words, ranks, each, settings)
    for key, value in (("nodes", size.nodes), ("processes", size.processes)):
        if value and settings.get(key) not in (None, value):
            what = f"{words.starter} says {key} {value}, but the settings say {settings[key]}"
            raise UsageError(what, where=_short(_written(words)), hint=f"remove {key} from one of them")
    return size


def _of_hosts(words: Split, hosts: list[tuple[str, int]], ranks: int, each: int) -> Size:
    """Size from the hosts, which are filled in order, as by the launchers."""
    slots = [min(count, each) if each else count for _, count in hosts]
    ranks = ranks or sum(slots)
    if ranks > sum(slots):
        what = f"{ranks} ranks are more than the {sum(slots)} slots of the hosts"
        raise UsageError(what, where=_short(_written(words)), hint="lower -np or name more hosts")
    filled, left = [], ranks
    for count in slots:
        filled.append(min(count, left))
        left -= filled[-1]
    used = [count for count in filled if count]
    if len(set(used)) > 1:
        shown = ", ".join(map(str, used))
        what = f"the hosts would have {shown} ranks, but all nodes of a job need equally many"
        raise UsageError(what, where=_short(_written(words)), hint="use a multiple of the slots, equal on every host")
    return Size(len(used), used[0])


def _of_ranks(words: Split, ranks: int, each: int, settings: Settings) -> Size:
    """Size from the number of ranks: nodes come from the settings, else from their GPUs per node, else one node."""
    each = each or int(settings.get("processes") or 0)
    nodes, gpus = int(settings.get("nodes") or 0), int(settings.get("gpus") or 0)
    if not ranks:
        return Size(nodes, each)
    if not nodes:
        per = each or (gpus if gpus and ranks % gpus == 0 else ranks)
        nodes = max(1, ranks // per)
    if ranks % nodes or (each and ranks != nodes * each):
        what = f"{ranks} ranks can't be shared equally by {nodes} nodes" + (f" with {each} each" if each else "")
        raise UsageError(what, where=_short(_written(words)), hint="correct -np, --nodes or --processes")
    return Size(nodes, ranks // nodes)


def _number(words: Split, name: str) -> int:
    text = words.last(name)
    if text and not (text.isdigit() and int(text)):
        raise UsageError(f"{words.starter}'s -{name} is {text!r}", hint="it must be a whole number above zero")
    return int(text or 0)


def _env(words: Split) -> Mapping[str, str]:
    """Variables that options set. `-x NAME` without a value is redundant: ranks have the variable anyway."""
    found: dict[str, str] = {}
    for one in words.options:
        if one.name == "x" and "=" in one.values[0]:
            name, _, value = one.values[0].partition("=")
            found[name] = value
        elif one.name == FUSION:
            found["HOROVOD_FUSION_THRESHOLD"] = str(_number(words, FUSION) * MIB)
        elif one.name in ENV:
            found[ENV[one.name]] = one.values[0] if one.values else "1"
    return found


def _sentence(words: Split, hosts: list[tuple[str, int]], size: Size, settings: Settings) -> str:
    ranks = f"{size.processes} {'rank' if size.processes == 1 else 'ranks'}"
    many = f"{size.nodes} {'node' if size.nodes == 1 else 'nodes'} with {ranks}" + (" each" if size.nodes > 1 else "")
    text = f"{words.starter} is run as an MPIJob"
    if size.nodes and size.processes:
        text += f": {many}"
    if hosts:
        names = [name for name, _ in hosts]
        shown = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
        text += f", which the queue chooses in place of {shown}"
    return text + (_of_gpus(int(settings.get("gpus") or 0), size.processes) if size.processes else "")


def _of_gpus(gpus: int, ranks: int) -> str:
    """End of the sentence if the numbers of GPUs and ranks per node differ; "" if they are equal."""
    if not gpus:
        return f"; without GPUs; for one per rank, add --gpus {ranks}"
    if gpus == ranks:
        return ""
    one = f"{gpus} {'GPU' if gpus == 1 else 'GPUs'}"
    uneven = f"{ranks} ranks share {one} on each node" if gpus < ranks else f"{one} on each node for {ranks} ranks"
    return f"; {uneven.replace('1 ranks', '1 rank')}; for one per rank, use --gpus {ranks}"


def _written(words: Split) -> list[str]:
    return [words.starter, *(word for one in words.options for word in one.words), *words.program]


def _short(command: list[str]) -> str:
    text = " ".join(command)
    return text if len(text) < 80 else f"{text[:77]}…"
