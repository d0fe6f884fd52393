"""The line in a Python file that a task or component of the compiled pipeline comes from."""

import ast
import re
from pathlib import Path

NUMBER = re.compile(r"-\d+$")


class PythonLines:
    """The functions of a file, and the lines of their calls."""

    def __init__(self, path: Path) -> None:
        self.definitions: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.pipeline = 1
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError, UnicodeDecodeError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                self.definitions[node.name.lower()] = line
                if any("pipeline" in ast.dump(one) for one in node.decorator_list):
                    self.pipeline = line
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.definitions.setdefault(target.id.lower(), node.lineno)
            elif isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                self.calls.setdefault(str(name).lower(), node.lineno)

    def line(self, *names: str, call: bool = False) -> int:
        """The line of the first name that is found: its definition, or with `call` its call."""
        for name in names:
            bare = NUMBER.sub("", name.removeprefix("comp-").removeprefix("exec-")).replace("-", "_").lower()
            for found in (self.calls, self.definitions) if call else (self.definitions, self.calls):
                if bare in found:
                    return found[bare]
        return self.pipeline
