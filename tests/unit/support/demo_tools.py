"""A tool set for tests, a `go` that builds it, and its content in the cache."""

from collections.abc import Callable
from pathlib import Path

from trainyard_dev.versions import ToolSet

Program = Callable[[str, str], Path]
DEMO = ToolSet(
    "demo", "example.org/demo", "v1.2.3", "test", (("example.org/demo", "demo"), ("example.org/demo/ctl", "democtl"))
)
# Writes what -o names, as the real compiler does: into a folder each package under the name of its last folder.
GO = """while [ $# -gt 0 ]; do [ "$1" != -o ] || { out=$2; shift 2; break; }; shift; done
for package; do case "$out" in
*/) echo "built $package" > "$out${package##*/}";;
?*) echo "built $package" > "$out";; esac; done"""


def left(cache: Path) -> list[str]:
    """Everything in the set's folder of the cache."""
    folder = cache / "tools" / "demo"
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock") if folder.exists() else []
