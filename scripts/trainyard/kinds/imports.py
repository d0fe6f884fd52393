"""Imports of the code in a folder, with their lines: found by parsing, without running anything."""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LARGEST = 1 << 20  # bytes; larger files are not parsed
MOST = 500  # files
SCRIPT = ".py"
# In the standard library of this Python or of an older one that a user may run this with, but not in the images'.
_GONE = """
aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis nntplib ossaudiodev
pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib
"""
GONE = frozenset(_GONE.split())
CATCHES = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


@dataclass(frozen=True)
class Import:
    """One import of a module that is outside the folder.

    Args:
        module: dotted name, `horovod.tensorflow.keras`; for `from a import b` it is `a.b`, whatever b is.
        sure: whether it is executed whenever the script is; otherwise it is conditional.
    """

    module: str
    file: str
    line: int
    sure: bool

    @property
    def top(self) -> str:
        """Top-level package of the module."""
        return self.module.partition(".")[0]


def of_folder(folder: Path, command: Sequence[str], python_path: str = "") -> list[Import]:
    """Imports of the command's script, and of the folder's files that it imports in turn.

    Args:
        command: as run in the folder; if it names no Python file, all files at the folder's top are read, and no
            import is sure.
        python_path: PYTHONPATH of the job.
    """
    scripts = list(_scripts(folder, command))
    reader = _Reader(folder, [entry for entry in python_path.split(":") if entry and not entry.startswith("/")])
    for path in scripts or sorted(folder.glob(f"*{SCRIPT}")):
        reader.follow(path, bool(scripts))
    elsewhere = reader.moves or any(entry.startswith("/") for entry in python_path.split(":"))
    if not elsewhere:
        return reader.found
    return [Import(one.module, one.file, one.line, False) for one in reader.found]


def files_of(folder: Path, command: Sequence[str]) -> list[Path]:
    """The command's scripts, and the folder's files that they import in turn; empty if the command names no script."""
    reader = _Reader(folder, [])
    for path in _scripts(folder, command):
        reader.follow(path, True)
    return list(reader.files)


def of_text(text: str, file: str = "") -> list[Import]:
    """Imports in a program's text; functions count as executed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [
        Import(module, file, line, sure)
        for module, line, sure, level in _imports(tree.body, True, functions=True)
        if not level and _is_foreign(module)
    ]


def _scripts(folder: Path, command: Sequence[str]) -> Iterator[Path]:
    """Python files that a command names, including by -m."""
    before = ""
    for word in command:
        path = folder / word
        if word.endswith(SCRIPT) and path.is_file():
            yield path
        elif before == "-m" and (found := _local(word, [folder])):
            yield found[-1]
        before = word


def _local(module: str, roots: Sequence[Path]) -> list[Path]:
    """Files of a module below one of these folders: its own and those of its packages; [] for any other module."""
    for root in roots:
        found, at = list[Path](), root
        for part in module.split("."):
            file = at / f"{part}{SCRIPT}"
            at = at / part
            if file.is_file():
                return [*found, file]
            if not at.is_dir():
                break
            found += [inside for name in ("__init__", "__main__") if (inside := at / f"{name}{SCRIPT}").is_file()]
        top = root / module.partition(".")[0]
        if found or (top.is_dir() and any(top.rglob(f"*{SCRIPT}"))):
            return found or [top]
    return []


def _is_foreign(module: str) -> bool:
    top = module.partition(".")[0]
    return bool(top) and (top in GONE or top not in sys.stdlib_module_names) and top != "__future__"


class _Reader:
    """Follows imports from file to file of one folder."""

    def __init__(self, folder: Path, entries: Sequence[str]) -> None:
        self.folder, self.found, self.moves = folder, list[Import](), False
        self._roots = [folder, folder / "src", *(folder / entry for entry in entries)]
        self._read: dict[Path, bool] = {}

    @property
    def files(self) -> Iterable[Path]:
        """The files that were read, in order."""
        return self._read

    def follow(self, path: Path, sure: bool) -> None:
        """Reads a file and its imports; reads a file again if it was unsure before and is sure now."""
        before = self._read.get(path)
        if before or (before is not None and not sure) or not path.is_file() or len(self._read) > MOST:
            return
        self._read[path] = sure
        try:
            text = path.read_bytes() if path.stat().st_size <= LARGEST else b""
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return
        self.moves = self.moves or b"sys.path" in text or b"addsitedir" in text
        name = path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.name
        for module, line, certain, level in _imports(tree.body, sure):
            if level:
                above = path.parents[level - 1] if level <= len(path.parents) else path.parent
                for file in _local(module, [above]) if module else ():
                    self.follow(file, certain)
            elif files := _local(module, [path.parent, *self._roots]):
                for file in files:
                    self.follow(file, certain)
            elif _is_foreign(module):
                self.found.append(Import(module, name, line, certain))


# (module, line, whether it is executed for sure, level of a relative import)
_Said = tuple[str, int, bool, int]


def _imports(body: Sequence[ast.AST], sure: bool, *, functions: bool = False) -> Iterator[_Said]:
    """Imports in statements.

    Args:
        functions: whether functions count as executed.
    """
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, sure, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            head = node.module or ""
            names = [f"{head}.{alias.name}".strip(".") for alias in node.names if alias.name != "*"]
            yield from ((name, node.lineno, sure, node.level) for name in names or [head])
        elif isinstance(node, ast.Try):
            caught = any(_catches(handler) for handler in node.handlers)
            yield from _imports(node.body, sure and not caught, functions=functions)
            for handler in node.handlers:
                yield from _imports(handler.body, False, functions=functions)
            yield from _imports([*node.orelse, *node.finalbody], sure, functions=functions)
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                always = "__name__" in ast.dump(node.test)
                yield from _imports(node.body, sure and always, functions=functions)
            yield from _imports(node.orelse, False, functions=functions)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imports(node.body, sure and functions, functions=functions)
        else:
            always = isinstance(node, (ast.ClassDef, ast.With, ast.AsyncWith))
            inside = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.match_case))]
            yield from _imports(inside, sure and always, functions=functions)


def _catches(handler: ast.ExceptHandler) -> bool:
    names = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    return handler.type is None or any(isinstance(one, ast.Name) and one.id in CATCHES for one in names)


def environment(env: Mapping[str, object]) -> str:
    """PYTHONPATH in a job's settings; "" unless it is a plain string."""
    value = env.get("PYTHONPATH", "")
    return value if isinstance(value, str) else ""
