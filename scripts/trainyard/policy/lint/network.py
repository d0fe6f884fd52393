"""Downloads at run time that the network of teams blocks."""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from trainyard.contract import Contract, Team
from trainyard.policy.lint.pod_rules import name_of, words
from trainyard.policy.lint.pods import Pod
from trainyard.policy.lint.report import Issue, Path

SAYS = ("print", "echo", "debug", "info", "warning", "error", "write")  # calls that only print their text
SET = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)
CODES = ("TY302", "TY303")
INSTALL = re.compile(
    r"\b(?:pip[\d.]*|conda|mamba|micromamba|pipx|poetry|yum|dnf|microdnf)\s+(?:-\S+\s+)*install\b|\bpip\.main\b"
    r"|\bapt(?:-get)?\s+(?:-\S+\s+(?:\S+=\S+\s+)?)*(?:install|update)\b|\bapk\s+(?:-\S+\s+)*(?:add|update)\b"
    r"|\buv\s+(?:add|sync|tool\s+install)\b|\bnpm\s+(?:install|i|ci)\b|\bgo\s+(?:get|install)\s+\S+\."
)
CLONE = re.compile(r"\bgit\s+(?:-\S+\s+)*clone\b")
LOAD = re.compile(r"\b(?:curl|wget|urlretrieve|urlopen)\b")
URL = re.compile(r"""\b(?:https?|ftp)://[^\s"'`)>\]]+""")
SHOWN = re.compile(r"\b(?:echo|printf|grep)\b[^\n;&|]*")  # arguments of shell commands, only printed or searched
LISTED = re.compile(r"""['"], ?['"]""")
NEAR = re.compile(  # this pod, this cluster, private addresses, and names without a dot
    r"^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[|[^.]*$)|\.(?:svc|local|internal)$|\.svc\."
)


def installs(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Packages that are installed at run time."""
    for container, path in pod.containers():
        for at, word in _texts(container):
            if INSTALL.search(LISTED.sub(" ", _started(word))):
                what = f"{name_of(container)} installs packages while it runs"
                yield "TY302", (*path, *at), what, "install them in the image"
                break


def _texts(container: dict[str, Any]) -> list[tuple[Path, str]]:
    """All texts that its program gets, and its single words joined to one command."""
    found = list(words(container))
    given = [word for at, word in found if at[0] in ("command", "args")]
    single = [word if re.fullmatch(r"\S+", word) else ";" for word in given]
    return [*found, (found[0][0], " ".join(single))] if single else found


def _started(word: str) -> str:
    """Calls in Python code, with their texts: a comment, a docstring or a message installs nothing."""
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes = list(ast.walk(ast.parse(word)))
    except (SyntaxError, ValueError, RecursionError):
        return SHOWN.sub("", word)
    raised = {id(one) for node in nodes if isinstance(node, ast.Raise) for one in ast.walk(node)}
    calls = [one for one in nodes if isinstance(one, ast.Call) and id(one) not in raised]
    calls = [one for one in calls if ast.unparse(one.func).rpartition(".")[2] not in SAYS]
    read = {one.id for call in calls for one in ast.walk(call) if isinstance(one, ast.Name)}
    given = [one for one in nodes if isinstance(one, SET) and _names(one) & read]
    return "\n".join(map(ast.unparse, [*calls, *given]))


def _names(given: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) -> set[str]:
    targets = given.targets if isinstance(given, ast.Assign) else [given.target]
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def fetches(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Code and files that are downloaded from outside."""
    for container, path in pod.containers():
        said = _texts(container)
        loads = any(LOAD.search(word) for _, word in said)
        for at, word in said:
            hosts = [host for host in map(_host, URL.findall(word)) if host and outside(host, contract)]
            if CLONE.search(word) or (loads and hosts and at[0] != "env"):
                where = f" from {hosts[0]}" if hosts else ""
                what = f"{name_of(container)} downloads files{where} while it runs"
                yield "TY303", (*path, *at), what, "add it to the image, or to a bucket of the team"
                break


def outside(host: str, contract: Contract) -> bool:
    """Whether a host is outside the cluster and not the object store. A host that Argo fills in counts as inside."""
    store = _host(str(mapping_of(contract, "s3").get("endpoint") or ""))
    return "{" not in host and host != store and not NEAR.search(host)


def mapping_of(contract: Contract, key: str) -> dict[str, object]:
    """A block of the contract; {} if it is missing."""
    found = contract.raw.get(key)
    return found if isinstance(found, dict) else {}


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


RULES = (installs, fetches)
