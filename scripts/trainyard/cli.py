"""The command line: one group of commands per noun, imported on first use.

Exit codes: 0 done; 1 an error or a failed check; 2 wrong usage; 130 interrupted.
"""

import difflib
import importlib
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

from trainyard import __version__
from trainyard.errors import TrainyardError, report

COMMANDS = {
    "adopt": "trainyard.commands.adopt",
    "data": "trainyard.commands.data",
    "generate": "trainyard.commands.generate",
    "gpus": "trainyard.commands.gpus",
    "init": "trainyard.commands.train",
    "kfp": "trainyard.commands.kfp",
    "lint": "trainyard.commands.lint",
    "login": "trainyard.commands.login",
    "logout": "trainyard.commands.login",
    "models": "trainyard.commands.models",
    "rightsize": "trainyard.commands.rightsize",
    "run": "trainyard.commands.run",
    "runs": "trainyard.commands.runs",
    "schedule": "trainyard.commands.schedule",
    "serve": "trainyard.commands.serve",
    "submit": "trainyard.commands.submit",
    "train": "trainyard.commands.train",
    "uninstall": "trainyard.commands.uninstall",
    "values": "trainyard.commands.values",
    "wheels": "trainyard.commands.wheels",
}


class LazyGroup(click.Group):
    """Imports a command's module only when the command is named, so that `--help` and completion are quick.

    Args:
        modules: the module of each command, by the command's name.
    """

    def __init__(self, *args: Any, modules: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.modules = dict(modules or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command object, or None for an unknown name."""
        if cmd_name not in self.modules:
            return None
        return getattr(importlib.import_module(self.modules[cmd_name]), cmd_name)


@click.group(cls=LazyGroup, modules=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="trainyard %(version)s")
def trainyard() -> None:
    """Turn a Kubernetes cluster with GPUs into a training platform that teams share.

    Shell completion: eval "$(_TRAINYARD_COMPLETE=bash_source trainyard)"
    """


def main() -> None:
    """Entry point: every known error is printed as `error: …` and `hint: …` on standard error."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = trainyard.main(prog_name="trainyard", standalone_mode=False)
    except TrainyardError as error:
        _end(error.lines(), error.exit_code)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        hint = "run `trainyard doctor`" if "doctor" in trainyard.modules else ""
        _end(report(f"{place}{error.strerror or error}", hint))
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _end(_of_click(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _end(report("interrupted"), 130)
    sys.exit(code if isinstance(code, int) else 0)


def _end(lines: list[str], code: int = 1) -> NoReturn:
    print("\n".join(lines), file=sys.stderr)
    sys.exit(code)


def _of_click(error: click.ClickException) -> list[str]:
    """The lines of a command-line error that click detected."""
    similar, context = getattr(error, "possibilities", None), getattr(error, "ctx", None)
    if context and (name := getattr(error, "command_name", "")):
        similar = difflib.get_close_matches(name, context.command.list_commands(context))
    what = error.message if similar else error.format_message()
    hint = f"run `{context.command_path} --help`" if context else ""
    if similar:
        hint = f"did you mean {' or '.join(similar)}?"
    return report(what[:1].lower() + what[1:].rstrip("."), hint)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Handles a termination request like Ctrl-C, so that clean-up runs."""
    raise KeyboardInterrupt
