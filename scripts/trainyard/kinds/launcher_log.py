"""Lines in an MPI launcher's log that come from the operator's connection to the workers."""

import re

# The script echoes its commands, one of them with all options of Open MPI; kubectl names the default container.
# Open MPI 5 warns if setpgid fails because the child was faster.
NOISE = re.compile(
    r"\+ (POD_NAME=|shift$|/opt/kube/kubectl exec )"
    r"|Defaulted container \"[^\"]+\" out of: "
    r"|\[[^\]]+\] plm:ssh: Warning: setpgid\("
)


def is_noise(line: str) -> bool:
    """Whether the line does not come from the command itself."""
    return bool(NOISE.match(line))
