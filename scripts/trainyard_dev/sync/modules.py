"""Writer of go.mod and go.sum of tool sets: with Go itself, so that checksums come from the modules' source."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from trainyard.components import registry
from trainyard.errors import TrainyardError
from trainyard.shell import CommandError
from trainyard_dev import folders
from trainyard_dev.sync.tree import Tree
from trainyard_dev.tools import golang
from trainyard_dev.versions import OWN_MODULES

ENV = {"GOFLAGS": "-mod=mod -buildvcs=false", **golang.env()}
KUBERNETES = "k8s.io/kubernetes"
Replacements = dict[str, tuple[str, str]]  # module -> (path, version), an empty version for a folder


def go_modules(tree: Tree, raw: dict[str, Any]) -> None:
    """Each set's go.mod requires the pinned version, go.sum has the sums of its packages; a new set gets both."""
    for stray in (path.parent for path in folders.each(tree.root, folders.TOOLS, "go.mod")):
        if stray.name not in raw["tools"]:
            where = stray.relative_to(tree.root).as_posix()
            tree.leave(where, "versions.yaml lacks a tool set with this name", "add it, or remove the folder")
    for name, spec in raw["tools"].items():
        folder = _folder(tree.root, spec.get("of", name))
        file = f"{folder}/go.mod"
        module, version = spec["module"], spec["version"]
        new = not tree.exists(file)
        if module.startswith(OWN_MODULES):
            if new or f"module {module}" not in tree.read(file).splitlines():
                tree.leave(file, "the module's name differs from versions.yaml", f"write: module {module}")
            continue
        found = "" if new else effective_modules(tree.read(file)).get(module)
        sums = tree.root / folder / "go.sum"
        if found is None:
            tree.leave(file, f"{module} is not required", f"write: require {module} {version}")
            continue
        if found == version and sums.exists() and f"{module} {version} h1:" in sums.read_text():
            continue
        tree.note(file if found != version else f"{folder}/go.sum", f"{module} {version}")
        if tree.dry:
            continue
        try:
            if new:
                (tree.root / folder).mkdir(parents=True, exist_ok=True)
                golang.go("mod", "init", f"{OWN_MODULES}{name}", cwd=tree.root / folder, env=ENV)
            if found != version:
                for other in _required(tree.root / folder, module, found, version):
                    tree.leave(file, f"upstream replaces {other} with a local folder", "find out the release")
            _filled(tree.root / folder, spec, _packages(spec, raw["tools"].get(spec.get("family"), spec)))
        except TrainyardError as error:
            if not isinstance(error, CommandError):
                tree.leave(file, error.what, error.hint)
                continue
            said = [line for line in error.output.splitlines() if line.strip()]
            reason = said[-1].strip() if said else f"code {error.returncode}"
            tree.leave(folder, reason.rstrip("."), "fix the cause, then run the same command again")


def _folder(root: Path, name: str) -> str:
    """A set's folder; a new one is in the folder of the component with its name or its pin."""
    found = folders.find(root, folders.TOOLS, name)
    if (root / found).exists():
        return found
    owner = next((one.name for one in registry.load(root / "charts") if name in (one.name, one.pin)), "")
    return f"charts/{owner}/{found}" if owner else found


def _required(folder: Path, module: str, before: str, version: str) -> list[str]:
    """Writes the version to go.mod, and upstream's changed replacements since `before` ("" if new).

    Returns:
        modules that go.mod replaces and upstream has in a folder: their publishers choose their version numbers.
    """
    _, replaced = requirements((folder / "go.mod").read_text())
    origin = next((name for name, (path, _) in replaced.items() if path == module), None)
    edits = [f"-require={origin or module}@{version}"]
    if origin:
        edits.append(f"-replace={origin}={module}@{version}")
    old = upstream_replacements(module, before) if before else {}
    new = upstream_replacements(module, version)
    for name in sorted(old.keys() | new.keys()):
        if module == KUBERNETES and (new.get(name) or old[name])[0] == name:
            edits.append(f"-require={name}@{new[name][1]}" if name in new else f"-droprequire={name}")
        elif name not in new:
            edits += [f"-dropreplace={name}"] if name in replaced else []
        elif new[name] != old.get(name) and new[name][1] and (name in replaced or name not in old):
            edits.append(f"-replace={name}={new[name][0]}@{new[name][1]}")
    golang.go("mod", "edit", *edits, cwd=folder, env=ENV)
    return sorted(name for name, (_, published) in new.items() if not published and name in replaced)


def _packages(spec: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """The packages that a set builds, and those of the first in its family, which this set's version may also build."""
    same = [first] if first["module"] == spec["module"] else []
    return sorted({package["path"] for one in (spec, *same) for package in one["packages"]})


def _filled(folder: Path, spec: dict[str, Any], packages: list[str]) -> None:
    """Writes go.sum, and go.mod's indirect requirements if the set has its own code."""
    if any(folder.glob("*.go")):
        golang.go("mod", "tidy", cwd=folder, env=ENV)
        return
    # Nothing here imports the packages: `go mod tidy` would drop them. A new file has no sums of older versions.
    sums = folder / "go.sum"
    before = sums.read_bytes() if sums.exists() else b""
    sums.unlink(missing_ok=True)
    tags = ",".join(spec.get("tags", ()))
    try:
        golang.go("list", "-deps", "-tags", tags, *packages, cwd=folder, env=ENV)
    except CommandError:
        sums.write_bytes(before)
        raise


def upstream_replacements(module: str, version: str) -> Replacements:
    """The replacements in a module's own go.mod, which only affect its own build: a set has to repeat them.

    Kubernetes replaces its libraries with folders of its repository; they are published as v0.<minor>.<patch>. Its set
    requires them: a compiled package is cached under the required version, so other sets find it under the same.

    Raises:
        TrainyardError: the module's go.mod is not available.
    """
    with tempfile.TemporaryDirectory() as empty:
        found = json.loads(golang.go("list", "-m", "-json", f"{module}@{version}", cwd=Path(empty), env=ENV).stdout)
    if "GoMod" not in found:
        hint = "use another version: a proxy may list versions that it cannot serve"
        raise TrainyardError(f"{module} {version} is not available as a module", where="versions.yaml", hint=hint)
    required, replaced = requirements(Path(found["GoMod"]).read_text())
    if module == KUBERNETES:
        # It has folders of samples, too, which it does not require and which are not always available.
        replaced = {name: target for name, target in replaced.items() if name in required or target[1]}
        published = re.sub(r"^v1\.", "v0.", version)
        replaced = {name: (name, published) if not v else (path, v) for name, (path, v) in replaced.items()}
    return replaced


def effective_modules(go_mod: str) -> dict[str, str]:
    """Module -> version as used in a build: the requirements of go.mod, after its replacements."""
    required, replaced = requirements(go_mod)
    return dict(replaced.get(module, (module, version)) for module, version in required.items())


def requirements(go_mod: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """The requirements of a go.mod, and its replacements by modules or folders; a folder has no version."""
    required: dict[str, str] = {}
    replaced: dict[str, tuple[str, str]] = {}
    block = ""
    for line in go_mod.splitlines():
        words = line.partition("//")[0].split()
        if not words:
            continue
        if words[-1] == "(":
            block = words[0]
            continue
        if words[0] == ")":
            block = ""
            continue
        verb, rest = (block, words) if block else (words[0], words[1:])
        if verb == "require" and len(rest) >= 2:
            required[rest[0]] = rest[1]
        if verb == "replace" and "=>" in rest:
            arrow = rest.index("=>")
            target = [*rest[arrow + 1 :], ""]
            replaced[rest[0]] = (target[0], target[1])
    return required, replaced
