"""Changes since the last run that passed, which decide the checks beyond the main job that have to run again.

The commit of the last good run is kept in the cache; without one, or where history lacks it, the last commit counts.
A campaign's last good run has a file of its own there.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run


def paths(campaign: str = "") -> list[str]:
    """Paths that differ from the last good commit, uncommitted ones too; [] outside of a repository."""
    base = good(campaign) or "HEAD~1"
    found = run(["git", "-C", ROOT, "diff", "--name-only", base], check=False)
    return found.stdout.splitlines() if found.returncode == 0 else []


def touch(changed: Iterable[str], inputs: Iterable[str]) -> list[str]:
    """The inputs (files, folders or patterns) that have a changed path."""
    changed = list(changed)
    return [at for at in inputs if any(fnmatchcase(path, at) or fnmatchcase(path, f"{at}/*") for path in changed)]


def remember(campaign: str = "") -> None:
    """Records that everything that has changed so far has passed."""
    head = run(["git", "-C", ROOT, "rev-parse", "HEAD"], check=False)
    if head.returncode == 0:
        (cache_dir() / f"passed-{campaign or 'commit'}").write_text(head.stdout.strip())


def good(campaign: str = "") -> str:
    """The commit of the last good run; "" where there is none, or history lacks it."""
    file = cache_dir() / f"passed-{campaign or 'commit'}"
    commit = file.read_text().strip() if file.exists() else ""
    known = commit and run(["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], check=False).returncode == 0
    return commit if known else ""
