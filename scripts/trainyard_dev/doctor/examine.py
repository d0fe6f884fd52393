"""Runs every check, in the order in which one would fix them."""

from __future__ import annotations

from trainyard_dev.doctor import engines, gpus, host, kernel
from trainyard_dev.doctor.finding import Finding, Wanted
from trainyard_dev.doctor.probes import Machine


def examine(machine: Machine, wanted: Wanted | None = None) -> list[Finding]:
    """All findings about a machine for a run of the wanted kind."""
    want = wanted or Wanted()
    rest = host.check(machine, want)
    order = ("rights", "room", "software")
    first = sorted(rest, key=lambda finding: order.index(finding.group))
    return [*first, *engines.check(machine, want), *kernel.check(machine), *gpus.check(machine, want)]
