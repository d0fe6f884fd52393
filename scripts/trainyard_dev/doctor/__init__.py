"""What this machine has and lacks for `make e2e`, with the command that fixes each."""

from trainyard_dev.doctor import engines, gpus, host, kernel
from trainyard_dev.doctor.finding import Finding, Wanted
from trainyard_dev.doctor.probes import Machine

ORDER = ("rights", "room", "software")


def examine(machine: Machine, wanted: Wanted | None = None) -> list[Finding]:
    """All findings about a machine for a run of the wanted kind, in the order in which to fix them."""
    want = wanted or Wanted()
    first = sorted(host.check(machine, want), key=lambda finding: ORDER.index(finding.group))
    return [*first, *engines.check(machine, want), *kernel.check(machine), *gpus.check(machine, want)]
