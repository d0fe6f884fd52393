"""Proofs that take too long for a run of checks: each has a make target, and is due when its inputs have changed.

`make e2e` includes a sample of each. The commit of a campaign's last good run is kept like that of the checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainyard_dev import changes


@dataclass(frozen=True)
class Campaign:
    """One campaign.

    inputs: paths from the repository's root; it is due when one has changed.
    sample: the checks of `FULL=1`, ids or groups, that show some of it on a whole cluster.
    """

    inputs: tuple[str, ...]
    sample: tuple[str, ...]


_RULES = ("policies", "charts/trainyard/templates", "charts/*/umbrella", "tests/policies")
CAMPAIGNS = {
    "attacks": Campaign((*_RULES, "charts", "scripts/trainyard_dev/attacks"), ("attack",)),
    "corpus": Campaign((*_RULES, "scripts/trainyard/policy", "scripts/trainyard_dev/corpus"), ("arrivals.upstream",)),
    "kfp-conformance": Campaign(
        ("policies", "pipelines/components", "scripts/trainyard/pipelines", "scripts/trainyard/policy", "tools/step"),
        ("pipelines.as-written",),
    ),
    "kfp-cost": Campaign(
        ("scripts/trainyard/pipelines/translate", "tools/step", "charts/argo/tools"), ("pipelines.cached",)
    ),
    "release-test": Campaign(
        ("docs/release.md", "pyproject.toml", "requirements.lock", "scripts/trainyard_dev/release",
         "charts/trainyard/templates/_images.tpl"),
        ("airgap",),
    ),
    "kit-test": Campaign(
        ("scripts/trainyard_dev/kit", "images/node", "images/mock-nvml", "charts/nvidia-device-plugin"),
        ("nodes.gpu-node", "train.folder"),
    ),
    "matrix": Campaign(
        (*_RULES, "versions.yaml", "tools/kubernetes", "charts/*/tests", "tests/scheduling", "tests/pipelines"),
        ("policies", "pipelines"),
    ),
    "bench": Campaign(
        ("charts/trainyard/overlays", "charts/volcano", "scripts/trainyard_dev/bench"),
        ("gang", "queues.strict"),
    ),
}  # fmt: skip


def due() -> Iterator[str]:
    """A line for each campaign that has to run again: its make target, and why."""
    for name, campaign in CAMPAIGNS.items():
        if not changes.good(name):
            yield f"due: make {name} (no successful run recorded here)"
        elif changed := changes.touch(changes.paths(name), campaign.inputs):
            yield f"due: make {name} ({', '.join(changed)} changed)"


def ended(name: str, *, good: bool, whole: bool = True) -> int:
    """Returns the exit code of a campaign that ended; records one that passed as a whole."""
    if good and whole:
        changes.remember(name)
    return int(not good)
