"""What changed since the last run that passed: which checks beyond the main job have to run again.

The commit of the last good run is kept in the cache; without one, or where history lacks it, the last commit counts.
"""

from __future__ import annotations

from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run


def paths() -> list[str]:
    """Paths that differ from the last good commit, uncommitted ones too; [] outside of a repository."""
    base = _good()
    found = run(["git", "-C", ROOT, "diff", "--name-only", base], check=False)
    return found.stdout.splitlines() if found.returncode == 0 else []


def remember() -> None:
    """Notes that everything that changed so far has passed."""
    head = run(["git", "-C", ROOT, "rev-parse", "HEAD"], check=False)
    if head.returncode == 0:
        (cache_dir() / "passed-commit").write_text(head.stdout.strip())


def _good() -> str:
    file = cache_dir() / "passed-commit"
    commit = file.read_text().strip() if file.exists() else ""
    known = commit and run(["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], check=False).returncode == 0
    return commit if known else "HEAD~1"
