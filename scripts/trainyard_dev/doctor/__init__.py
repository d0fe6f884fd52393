"""What this machine has and lacks for `make e2e`, with the command that fixes each."""

from trainyard_dev.doctor.examine import examine
from trainyard_dev.doctor.finding import Finding

__all__ = ["Finding", "examine"]
