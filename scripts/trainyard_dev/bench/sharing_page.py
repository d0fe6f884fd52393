"""The section on sharing GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trainyard_dev.bench import fractional_rounds, tables
from trainyard_dev.bench.results import Figure

INTRODUCTION = """\
Here pods may ask for a fraction of a GPU, as 3,078 of openb's do: `default`, the nodes with GPUs, pods that never
leave, in random order, until they ask for 130 % of the GPUs; a pod that is refused is taken away. That is how FGD's
published table (ATC'23) was made, by simulation. Kubernetes' own count of GPUs knows no parts, so Volcano runs with
its plugin `deviceshare`: nodes register their GPUs in annotations, as its device plugin does; a pod asks for
`vgpu-number` GPUs and of each for `vgpu-cores` and `vgpu-memory` hundredths; the scheduler chooses the GPU and writes
it on the pod. The harness adds up what was written: no GPU may be allocated twice, and a pod bound without a GPU
counts as refused. `best-fit` is the published table's policy BestFit, simulated, with the same pods. On a tenth of
the cluster it allocates within half a point of what was published for the whole, so that the two can be compared.
"""
CAVEAT = """\
What Volcano 1.14 does with shared GPUs, from its source and seen here:

- A placed pod counts **twice** on its GPU until its node's object changes (Volcano's issue 4809, fixed after 1.14):
  two pods of half a GPU, a moment apart, don't share one. A real device plugin speaks every 30 s, which puts the count
  right. Here pods come one by one and it speaks after each, so the figures are those of the policy; a case that ends in
  `+20` lets 20 pods come before it speaks, and a pod may then be bound without a GPU.
- After its start the scheduler knows no GPU of a node until that node's object changes, and binds pods without one.
- `SchedulePolicy: binpack` ranks nodes; on a node always the last GPU that fits is taken.
- The share of a pod with several GPUs counts once in queues and in the plugin `binpack`.

For these reasons the platform doesn't share GPUs by default: its `nvidia.com/gpu` are whole ones. `ours-sharing` is
its configuration with `deviceshare` added and the reserve for whole GPUs left out, as every node here has GPUs. It
weighs what is used of a node, not what is left of it in cores and GPUs as best fit does; other weights of `binpack`
and of the plugin, tried in simulation on seeds that are not reported, moved it by less than a point.
"""
ROUNDS = """\
Not replayed on the whole cluster, as the published runs were: in every round `deviceshare` looks for every GPU through
what its metrics say of all pods' GPUs (`vgpu.ResetDeviceMetrics`), so that rounds grow at least with the square of the
GPUs, and pods that come one by one take two rounds each. Milliseconds of the scheduler's processor time for a round in
which nothing happens, with a pod on every GPU of so much of the nodes with GPUs; `ours` knows whole GPUs only:
"""
PUBLISHED = "Published for the list `{}`, the whole cluster, mean of 10 seeds:\n"


def section(figures: Sequence[Figure], shown: Mapping[str, str], file: Callable[[str], str]) -> str:
    """The section of the page."""
    text = [INTRODUCTION]
    measured = [one for one in figures if not one.column.startswith("published")]
    rounds = [one for one in measured if one.metric == fractional_rounds.METRIC]
    for case in tables.cases([one for one in measured if one not in rounds]):
        text += [
            f"### {case}\n",
            tables.by_column(measured, case, shown),
            f"![GPUs allocated](benchmarks/{file(case)})\n",
        ]
    published = [one for one in figures if one.column.startswith("published")]
    for case in tables.cases(published):
        text += [
            PUBLISHED.format(case.split("@")[0]),
            tables.by_column(published, case, {key: shown[key] for key in shown if key.startswith("allocated")}),
        ]
    if rounds:
        text += [ROUNDS, tables.by_case(rounds, fractional_rounds.METRIC)]
    return "\n".join([*text, CAVEAT])
