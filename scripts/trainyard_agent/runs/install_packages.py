"""Installs a run's packages; copied into a pod of the job's own image as one file: `python3 install_packages.py PLAN`.

So it needs only the standard library of whatever Python the image has. pip is in the same folder. Packages that the
image has are used as they are; missing ones go to PYTHONUSERBASE, where every Python of the pod searches.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

NOTE = ".trainyard.json"  # records what is installed: by which Python, and with which packages
FIRST = "trainyard.pth"
IMAGE = "image"  # next to the plan: packages of the image, without the dependencies that it doesn't meet
NEW = "new"  # next to the plan: marks installed packages that are not in the store yet
# PYTHONPATH holds packages of the image itself and comes first: put requested packages before it.
PTH = "import sys; p = {0!r}; p in sys.path and (sys.path.remove(p), sys.path.insert(0, p))\n"
NONE = re.compile(r"(?:distribution found for|version that satisfies the requirement) (.+)")
THERE = re.compile(r"\(from versions: ([^)]*)\)")
HASH = re.compile(r"^\s*(\S+?)(?:==\S+)? from .*:$")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
FROM = re.compile(r"\(from ([A-Za-z0-9._-]+)")
SHOWN = 6  # versions
# Packages that bring the same modules, for CPUs alone and for GPUs too: to pip, either satisfies both names.
SAME = {"tensorflow-cpu": "tensorflow", "xgboost-cpu": "xgboost"}


class InstallError(Exception):
    """The reason why packages are missing, in one sentence with a fix."""


def main(argv: list[str]) -> int:
    """Installs what the plan names, unless it is installed already; returns the exit code."""
    try:
        return install(Path(argv[0]).absolute())
    except InstallError as error:
        print(f"InstallError: {error}", file=sys.stderr, flush=True)  # `runs show` searches for such a line
        return 1


def install(plan_file: Path) -> int:
    """Brings the folder of PYTHONUSERBASE to the state that the plan wants. Raises InstallError."""
    plan: dict[str, Any] = json.loads(plan_file.read_text(encoding="utf-8"))
    base, mark = Path(os.environ["PYTHONUSERBASE"]), plan_file.parent / NEW
    packages = Path(site.getusersitepackages())
    if not site.ENABLE_USER_SITE or base not in packages.parents:
        raise InstallError(
            "the image's Python looks at no packages beside its own, as in a virtual environment. "
            "Put them into the image, and write requirements: ''."
        )
    found = fingerprint(base)
    note = _note(base / NOTE)
    if note.get("fingerprint") == found:
        print(f"packages: {len(note['installed'])} that are in the store", flush=True)
        return 0
    if note:
        print("packages: the image has changed since they were installed; they are installed again", flush=True)
        shutil.rmtree(str(base))
    base.mkdir(parents=True, exist_ok=True)
    code, said = pip(plan, plan_file.parent)
    if code:
        raise InstallError(reason(said, plan))
    packages.mkdir(parents=True, exist_ok=True)
    (packages / FIRST).write_text(PTH.format(str(packages)), encoding="utf-8")
    installed = sorted(_named(one) for one in metadata.distributions(path=[str(packages)]))
    text = json.dumps({"fingerprint": found, "installed": installed}, indent=1)
    (base / NOTE).write_text(text, encoding="utf-8")
    mark.write_text("anew" if note else "first", encoding="utf-8")
    print(f"packages: installed {', '.join(installed) or 'nothing, the image has everything'}", flush=True)
    return 0


def fingerprint(base: Path) -> list[str]:
    """The image's Python and packages: they decide what has to be installed."""
    found = {_named(one) for one in _of_image(base)}
    return [platform.python_implementation(), platform.python_version(), platform.machine(), *sorted(found)]


def taken_as_they_are(folder: Path) -> None:
    """Describes the image's packages to pip, without dependencies that the image lacks, and under their other names.

    The image lacks some on purpose, such as setuptools for Debian's torch; pip would look up each in the index. It
    would do so for `tensorflow`, too, which `tensorflow-cpu` provides.
    """
    from pip._vendor.packaging.requirements import Requirement  # in the same folder as this file

    found = {_canonical(one.metadata["Name"] or "?"): one for one in reversed(list(_of_image(folder)))}
    pairs = [*SAME.items(), *((whole, part) for part, whole in SAME.items())]
    also = {other: found[name] for name, other in pairs if name in found and other not in found}
    found.update(also)

    def met(text: str) -> bool:
        need = Requirement(text)
        if need.marker and not need.marker.evaluate({"extra": ""}):
            return True  # for another Python, or for an extra, which may not be requested
        there = found.get(_canonical(need.name))
        return there is not None and need.specifier.contains(there.version, prereleases=True)

    for name, one in found.items():
        needs = one.requires or []
        held = [need for need in needs if met(need)]
        if len(held) < len(needs) or name in also:
            info = folder / f"{name.replace('-', '_')}-{one.version}.dist-info"
            info.mkdir(parents=True, exist_ok=True)
            lines = [
                f"Name: {name if name in also else one.metadata['Name']}",
                f"Version: {one.version}",
                *(f"Requires-Dist: {need}" for need in held),
            ]
            text = "\n".join(["Metadata-Version: 2.1", *lines, ""])
            (info / "METADATA").write_text(text, encoding="utf-8")


def pip(plan: dict[str, Any], folder: Path) -> tuple[int, list[str]]:
    """Runs pip; returns its exit code and every line that it printed."""
    words = [sys.executable, "-m", "pip", "install", "--user", "--break-system-packages", "--only-binary=:all:"]
    words += ["--no-compile", "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    log = folder / "pip.log"  # the only place that has the index's answers
    words += ["--no-warn-script-location", "--retries=2", "--timeout=15", f"--log={log}"]
    words.append(f"--requirement={folder / 'requirements.txt'}")
    if plan["constraints"]:
        words.append(f"--constraint={folder / 'constraints.txt'}")
    words.append(f"--index-url={plan['index']}" if plan["index"] else "--no-index")
    words += [f"--trusted-host={host}" for host in plan["plain"]]
    if plan["wheels"]:
        words.append(f"--find-links={folder / 'wheels.html'}")
    if (folder / "ca.pem").exists():
        words.append(f"--cert={folder / 'ca.pem'}")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    taken_as_they_are(folder / IMAGE)
    paths = [str(folder / IMAGE), str(folder), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    env.update(PIP_CONFIG_FILE=os.devnull, PYTHONDONTWRITEBYTECODE="1")
    user = env.pop("INDEX_USERNAME", "")
    password = env.pop("INDEX_PASSWORD", "")
    if user and plan["index"]:
        env["NETRC"] = _netrc(plan["index"], user, password)
    pipe = subprocess.Popen(
        words, env=env, cwd=str(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    for line in pipe.stdout or ():
        lines.append(line.rstrip())
        print(lines[-1].split("?X-Amz-")[0], flush=True)  # a presigned URL gives access to that wheel
    code = pipe.wait()
    asked = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return code, [*(line for line in asked if "Could not fetch URL" in line), *lines]


def reason(said: list[str], plan: dict[str, Any]) -> str:
    """pip's error as one sentence: the line that can't be installed, why, and how to fix it."""
    lines = {one["name"]: one for one in plan["lines"] + plan["constraints"]}
    source = f"the index {plan['index']}" if plan["index"] else "the platform's wheels" if plan["wheels"] else "nothing"
    advice = "Use a version that exists, or ask the platform engineer for `trainyard wheels put`"
    if any("NewConnectionError" in one or "ConnectTimeout" in one or "Connection to " in one for one in said):
        return (
            f"the index {plan['index']} can't be reached from pods of the team. "
            "The platform engineer allows it with global.contract.packages.egress."
        )
    if any("401 Client" in one or "403 Client" in one or "User for " in one for one in said):
        keys = "The platform engineer sets its keys with global.contract.packages.secret"
        return f"the index {plan['index']} refuses the pod. {keys}."
    if any("CERTIFICATE_VERIFY_FAILED" in one for one in said):
        authority = "Set its authority in global.contract.packages.ca"
        return f"the certificate of {plan['index']} is not trusted. {authority}."
    if "DO NOT MATCH THE HASHES" in " ".join(said):
        names = [match[1] for match in map(HASH.match, said) if match]
        line = next((lines[_canonical(one)] for one in names if _canonical(one) in lines), None)
        return f"{_at(line)} {source} has a file with another hash. Write the new hash."
    if any("conflicting dependencies" in one for one in said):
        return _conflict(said, lines)
    if unhashed := next((one for one in said if "require" in one.lower() and "hash" in one.lower()), None):
        return f"{unhashed.replace('ERROR: ', '')} Give every line, and what it needs, a hash; or none."
    for one in said:
        match = NONE.search(one)
        if match:
            return _missing(match[1].strip(), said, lines, source, advice)
    last = next((one for one in reversed(said) if one.startswith("ERROR")), said[-1] if said else "pip said nothing")
    return f"pip could not install the requirements: {last.replace('ERROR: ', '')}. Its own lines are above."


def _conflict(said: list[str], lines: dict[str, Any]) -> str:
    """Lines that contradict each other, with pip's message for each."""
    causes = []
    for one in said[next(at for at, one in enumerate(said) if "conflict is caused by" in one) + 1 :]:
        if not one.strip():
            break
        causes.append(one.strip().replace("The user requested ", "you ask for "))
    names = {_canonical(word) for one in causes for word in NAME.findall(one)}
    at = [line["where"] for name, line in lines.items() if name in names]
    return f"{', '.join(at) or 'requirements'}: these conflict: {'; '.join(causes)}. Change one of the lines."


def _missing(wanted: str, said: list[str], lines: dict[str, Any], source: str, advice: str) -> str:
    text = THERE.sub("", wanted).strip()
    name, parent = NAME.match(text), FROM.search(text)
    line = lines.get(_canonical(name[0] if name else text))
    because = ""
    if parent and _canonical(parent[1]) in lines and parent[1] != "versions":
        because, line = f", which {parent[1]} needs,", lines[_canonical(parent[1])]
    versions: list[str] = []
    for one in said:
        there = THERE.search(one)
        if there and there[1] != "none":
            versions = [version.strip() for version in there[1].split(",")]
    has = f"{source} has {', '.join(versions[-SHOWN:])}" if versions else f"{source} has no wheel of it for this image"
    text = FROM.split(text)[0].strip()
    return f"{_at(line)} {text}{because} is not available: {has} (Python {platform.python_version()}). {advice}."


def _at(line: dict[str, str] | None) -> str:
    return f"{line['where']}:" if line else "requirements:"


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _named(one: metadata.Distribution) -> str:
    return f"{_canonical(one.metadata['Name'] or '?')}=={one.version}"


def _of_image(base: Path) -> Iterator[metadata.Distribution]:
    """Packages that Python finds, without a run's packages (at `base`) and those in this file's folder."""
    paths = [one for one in sys.path if base != Path(one) and base not in Path(one).parents]
    own = str(Path(__file__).parent)
    return iter(metadata.distributions(path=[one for one in paths if one != own]))


def _note(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        return {}


def _netrc(index: str, user: str, password: str) -> str:
    host = index.split("://", 1)[-1].split("/", 1)[0].rsplit(":", 1)[0]
    path = Path(os.environ.get("TMPDIR", "/tmp")) / "trainyard-netrc"
    path.touch(mode=0o600)
    path.write_text(f"machine {host} login {user} password {password}\n", encoding="utf-8")
    return str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
