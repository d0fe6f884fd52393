"""The section on sharing cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trainyard.bench import tables
from trainyard.bench.results import Figure

INTRODUCTION = """\
Here pods may ask for a part of one card, as 3,078 of openb's do: `default`, the nodes with GPUs, pods that never leave,
in random order, until they ask for 130 % of the cards; a pod that is refused is taken away. That is how FGD's published
table (ATC'23) was made, by simulation. Kubernetes' own count of GPUs knows no parts, so Volcano runs with its plugin
`deviceshare`: nodes register their cards in annotations, as its device plugin does; a pod asks for `vgpu-number` cards
and of each for `vgpu-cores` and `vgpu-memory` hundredths; the scheduler chooses the card and writes it on the pod.
The harness adds up what was written: no card may be given away twice, and a pod bound without a card counts as
refused. `best-fit` is the published table's policy BestFit, on paper, with the same pods.
"""
CAVEAT = """\
What Volcano 1.14 does with shared cards, from its source and seen here:

- A placed pod counts **twice** on its card until its node's object changes (Volcano's issue 4809, mended after 1.14):
  two pods of half a card don't share one that are a moment apart. The harness speaks for the device plugin after every
  20 pods, which puts the count right; a real plugin speaks every 30 s. In between pods go to emptier cards than they
  need, or are bound without one, so part of what is lost below is that fault's.
- After its start the scheduler knows no card of a node until that node's object changes, and binds pods without one.
- `SchedulePolicy: binpack` ranks nodes; on a node always the last card that fits is taken.
- The share of a pod with several cards counts once in queues and in the plugin `binpack`.

For these reasons the platform doesn't share cards by default: its `nvidia.com/gpu` are whole ones.
"""
PUBLISHED = "Published, the whole cluster, mean of 10 seeds, GPUs allocated in %:\n"


def section(figures: Sequence[Figure], shown: Mapping[str, str], file: Callable[[str], str]) -> str:
    """The section of the page."""
    text = [INTRODUCTION]
    measured = [one for one in figures if not one.column.startswith("published")]
    for case in tables.cases(measured):
        text += [
            f"### {case}\n",
            tables.by_column(measured, case, shown),
            f"![GPUs allocated](benchmarks/{file(case)})\n",
        ]
    published = [one for one in figures if one.column.startswith("published")]
    for case in tables.cases(published):
        text += [f"{PUBLISHED.removesuffix(':' + chr(10))}, list `{case.split('@')[0]}`:\n"]
        text += [tables.by_column(published, case, {key: shown[key] for key in shown if key.startswith("allocated")})]
    return "\n".join([*text, CAVEAT])
