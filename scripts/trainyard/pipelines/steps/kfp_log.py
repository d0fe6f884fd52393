"""Logs of kfp's executor without its own lines: the step's arguments, and the paths of its outputs."""

import re
from collections.abc import Iterable, Iterator

# A step that uses Python's `logging` has the same prefix before its lines.
OWN = ("Looking for component `", 'Loading KFP component "', "Wrote executor output file", "Did not write output file")
SAID = re.compile(rf"^\[KFP Executor [^]]*\]: ({'|'.join(map(re.escape, OWN))})")
INPUT = re.compile(r"^\[KFP Executor [^]]*\]: Got executor_input:\s*$")
INPUT_ENDS = "}"


def own(log: Iterable[str]) -> Iterator[str]:
    """The lines that the step has written, as they arrive."""
    inside = False
    for line in log:
        if inside:
            inside = line != INPUT_ENDS
        elif INPUT.match(line):
            inside = True
        elif not SAID.match(line):
            yield line
