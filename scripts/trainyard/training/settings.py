"""Settings of `trainyard train`: trainyard.yaml in the code's folder, and flags that override it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from trainyard.errors import UsageError
from trainyard.kinds import check

FILE = "trainyard.yaml"
BY_HAND = ("team", "command", "env", "mounts")  # set by -n, by the words after --, and by flags that may be repeated
Settings = dict[str, Any]


def flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds a flag for each setting of a job, from the schema; the command gets them as `settings`."""
    import functools

    @functools.wraps(function)
    def command(*args: Any, env: tuple[str, ...], mount: tuple[str, ...], **rest: Any) -> Any:
        given = {key: rest.pop(_variable(key)) for key in _plain()}
        found = {key: value for key, value in given.items() if value is not None}
        if env:
            found["env"] = dict(_pair(text) for text in env)
        if mount:
            found["mounts"] = [_mount(text) for text in mount]
        return function(*args, settings=found, **rest)

    options = [_option(key, rule) for key, rule in _plain().items()]
    options.append(click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="Environment of the command."))
    options.append(click.option("--mount", multiple=True, metavar="CLAIM:PATH[:ro]", help="Mount a claim of the team."))
    for option in reversed(options):
        command = option(command)
    return command


def merged(folder: Path | None, file: Path | None, given: Settings, command: Sequence[str]) -> Settings:
    """The file's settings, overridden by flags; `env` is merged by name.

    Args:
        folder: folder whose trainyard.yaml is read if `file` is None; None: no file is read.

    Raises:
        UsageError: the file can't be read, or a setting is invalid.
    """
    path = file or (folder / FILE if folder and (folder / FILE).is_file() else None)
    found: Settings = {}
    if path:
        try:
            found = check.settings(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the settings can't be read: {error}", where=str(path)) from None
    check.values(given, "flags")
    env = {**(found.get("env") or {}), **(given.get("env") or {})}
    found = {**found, **given}
    if env:
        found["env"] = env
    if command:
        found["command"] = list(command)
    return found


def _plain() -> Mapping[str, Any]:
    return {key: rule for key, rule in check.schema()["properties"].items() if key not in BY_HAND}


def _option(key: str, rule: Mapping[str, Any]) -> Callable[..., Any]:
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in key)
    kind: Any = str
    if "enum" in rule:
        kind = click.Choice(rule["enum"])
    elif rule.get("type") == "integer":
        kind = click.IntRange(rule.get("minimum"), rule.get("maximum"))
    text = rule["description"] + (f" Default: {rule['default']}." if "default" in rule else "")
    return click.option(f"--{name}", _variable(key), type=kind, default=None, help=text)


def _variable(key: str) -> str:
    return f"job_{key}".lower()


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--env: expected NAME=VALUE, got {text!r}")
    return name, value


def _mount(text: str) -> dict[str, Any]:
    claim, _, rest = text.partition(":")
    path, _, mode = rest.partition(":")
    if not claim or not path or mode not in ("", "ro", "rw"):
        raise UsageError(f"--mount: expected CLAIM:PATH or CLAIM:PATH:ro, got {text!r}")
    return {"claim": claim, "path": path, **({"readOnly": True} if mode == "ro" else {})}
