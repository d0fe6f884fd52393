"""Parses the command that kfp's SDK writes before a component's own, word by word: the packages that pip would install.

    kfp 2.7 to 2.17   sh -c '\\nif ! [ -x "$(command -v pip)" ]; then … PIP_… python3 -m pip install … && "$0" "$@"\\n'
    kfp 1.8           sh -c '(PIP_… python3 -m pip install … || PIP_… python3 -m pip install … --user) && "$0" "$@"'

A command that differs from the SDK's by one word is the user's own, and is left unchanged.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement

PIP = "python3 -m pip install --quiet --no-warn-script-location"
QUIET = "PIP_DISABLE_PIP_VERSION_CHECK=1"
QUOTED = r"""(?:'[^'\n\\]*'|"[^"\n$`\\]*")"""  # a requirement as repr() writes it; a shell reads these unchanged
OPTIONS = r"(?: --(?:index-url|extra-index-url|trusted-host) [\w./:@%+~-]+)*"
CALL = rf"{re.escape(PIP)}{OPTIONS}(?: {QUOTED})+"
ENSURED = (
    'if ! [ -x "$(command -v pip)" ]; then '
    "python3 -m ensurepip || python3 -m ensurepip --user || apt-get install python3-pip fi "
)
VENV = f'export {QUIET} tmp=$(mktemp -d) python3 -m venv "$tmp/venv" --system-site-packages . "$tmp/venv/bin/activate" '
SCRIPTS = (
    rf'{re.escape(ENSURED + QUIET)} (?:{CALL} && )?(?:{re.escape(VENV)})?{CALL}(?: && {CALL})? && "\$0" "\$@"',
    rf'\({QUIET} (?P<call>{CALL}) \|\| {QUIET} (?P=call) --user\) && "\$0" "\$@"',
)
ALONE = ("--no-deps", 'typing-extensions>=3.7.4,<5; python_version<"3.9"')  # always installed with kfp
RUNTIME = metadata.version("kfp")  # 2.17, as in steps
OLD = re.compile(r"\bkfp\.components\.executor_main\b")  # before kfp 2.4: the same program under its old name


@dataclass(frozen=True)
class Installer:
    """Requested packages: kfp's own runtime or not, further packages, and the indexes that provide them."""

    runtime: bool = False
    packages: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()


def split(command: Sequence[str]) -> tuple[Installer | None, list[str]]:
    """The installer before a command, and the command itself; None and the whole command if no SDK wrote an installer.

    The runtime of any kfp 2 release counts as present. A kfp from elsewhere is a package like any other.
    """
    script = re.sub(r"\s+", " ", command[2]).strip() if tuple(command[:2]) == ("sh", "-c") and len(command) > 3 else ""
    found = next((match for one in SCRIPTS if (match := re.fullmatch(one, script))), None)
    if found is None:
        return None, list(command)
    calls = [found["call"]] if "call" in found.re.groupindex else re.findall(CALL, script)
    words = [ast.literal_eval(one) for call in calls for one in re.findall(QUOTED, call)]
    packages = [word for word in words if word not in ALONE and not _runtime(word)]
    if any(word.startswith("-") for word in packages):
        return None, list(command)
    indexes = re.findall(r"index-url (\S+)", " ".join(calls))
    asked = Installer(any(map(_runtime, words)), tuple(dict.fromkeys(packages)), tuple(dict.fromkeys(indexes)))
    return asked, [OLD.sub("kfp.dsl.executor_main", word) for word in command[3:]]


def _runtime(word: str) -> bool:
    """Whether the requirement is a release of kfp 2, or accepts the one that steps have."""
    try:
        kfp = Requirement(word)
    except InvalidRequirement:
        return False
    pinned = any(one.operator == "==" and one.version.startswith("2.") for one in kfp.specifier)
    alone = kfp.name.lower() == "kfp" and not (kfp.url or kfp.extras)
    return alone and (pinned or kfp.specifier.contains(RUNTIME))
