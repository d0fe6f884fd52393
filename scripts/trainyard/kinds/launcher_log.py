"""What the operator's way from an MPI launcher to its workers writes into the launcher's log."""

import re

# Its script shows each of its commands, one of them with all that Open MPI wants to be told; kubectl names a container.
# Open MPI 5 says when its child was faster than it.
NOISE = re.compile(
    r"\+ (POD_NAME=|shift$|/opt/kube/kubectl exec )"
    r"|Defaulted container \"[^\"]+\" out of: "
    r"|\[[^\]]+\] plm:ssh: Warning: setpgid\("
)


def is_noise(line: str) -> bool:
    """Whether a line is none of the command's own."""
    return bool(NOISE.match(line))
