"""What this machine has and lacks for `make e2e`, with the command that mends each."""

from trainyard.doctor.examine import examine
from trainyard.doctor.finding import Finding

__all__ = ["Finding", "examine"]
