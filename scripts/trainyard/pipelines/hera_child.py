"""Run as a separate script: imports a Python file and writes the hera Workflow in it as JSON.

    hera_child.py FILE NAME OUT REPORT

NAME may be empty. On an error in the author's file it writes REPORT: {"what", "line", "hint"}. Imports no trainyard.
"""

import importlib.util
import json
import os
import sys
import traceback
from typing import Any


def main(path: str, name: str, out: str, report: str) -> int:
    own = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != own]
    sys.path.insert(0, os.path.dirname(path))
    sys.argv = [path]
    try:
        document = workflow(path, name)
    except SyntaxError as error:
        return _report(report, f"invalid Python: {error.msg}", error.lineno or 0)
    except ModuleNotFoundError as error:
        return _report(
            report, f"the module {error.name} is not installed", _line(error, path), "install it beside trainyard"
        )
    except ChoiceError as error:
        return _report(report, str(error), 0, "give the name of one with --name")
    except BaseException as error:
        text = " ".join(str(error).split()) or "no message"
        return _report(report, f"{type(error).__name__}: {text}", _line(error, path))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(document, file, default=str)
    return 0


class ChoiceError(Exception):
    """The file has no workflow, or several."""


def workflow(path: str, name: str) -> Any:
    """The only workflow of the file, or the one with that name (its variable's or its own)."""
    from hera.workflows import Workflow

    spec = importlib.util.spec_from_file_location("workflow_file", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["workflow_file"] = module
    spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Workflow)}
    found = {key: value for key, value in found.items() if not key.startswith("_")}
    chosen = {key: value for key, value in found.items() if name in ("", key, value.name, value.generate_name)}
    distinct = {id(value): value for value in chosen.values()}
    if len(distinct) != 1:
        names = ", ".join(sorted(found)) or "none"
        raise ChoiceError(
            f"the file has {len(distinct)} hera workflows{f' called {name}' if name else ''}; it has: {names}"
        )
    return next(iter(distinct.values())).to_dict()


def _line(error: BaseException, path: str) -> int:
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else 0


def _report(report: str, what: str, line: int, hint: str = "") -> int:
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"what": what, "line": line, "hint": hint}, file)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
