"""The command line: one group of commands per noun, loaded when it is used.

Exit codes: 0 done; 1 an error or a failed check, in one sentence; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType
from typing import Any

import click

from trainyard import __version__
from trainyard.errors import TrainyardError

COMMANDS = {
    "adopt": "trainyard.commands.adopt",
    "data": "trainyard.commands.data",
    "generate": "trainyard.commands.generate",
    "gpus": "trainyard.commands.gpus",
    "init": "trainyard.commands.train",
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
    """Entry point: every known error ends as one sentence on standard error."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = trainyard.main(prog_name="trainyard", standalone_mode=False)
    except TrainyardError as error:
        print(f"trainyard: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        hint = " run `trainyard doctor`." if "doctor" in trainyard.modules else ""
        print(f"trainyard: {place}{error.strerror or error}.{hint}", file=sys.stderr)
        sys.exit(1)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        print("trainyard: interrupted.", file=sys.stderr)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """A termination request ends like Ctrl-C, so that clean-up runs."""
    raise KeyboardInterrupt
