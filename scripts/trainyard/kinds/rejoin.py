"""Runs torchrun on one node of an elastic job; travels into its pod as text: `python3 -c TEXT WORDS...`.

A torchrun that is asked to end closes the place where ranks meet, for the nodes that stay, too. So when this pod has to
go its torchrun is killed before it can do that, its ranks are asked to end, and the others meet again without them.
"""

import os
import signal
import subprocess
import sys
import time

GRACE_S = 20


def main(words: list[str]) -> int:
    """Runs the command to its end; returns its exit code."""
    # Else a node that comes later waits for what was told to those of an earlier round alone (torch 2.4 to 2.6).
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    agent = subprocess.Popen(words)
    signal.signal(signal.SIGTERM, lambda *_: leave(agent))
    code = agent.wait()
    return code if code >= 0 else 128 - code


def leave(agent: "subprocess.Popen[bytes]") -> None:
    """Ends torchrun at once, then its ranks, and this process."""
    ranks = children(agent.pid)
    agent.kill()
    send(ranks, signal.SIGTERM)
    end = time.time() + GRACE_S
    while time.time() < end and any(os.path.exists("/proc/" + pid) for pid in ranks):
        time.sleep(0.1)
    send(ranks, signal.SIGKILL)
    os._exit(128 + signal.SIGTERM)


def send(pids: list[str], number: int) -> None:
    """Signals those that are still there."""
    for pid in pids:
        try:
            os.kill(int(pid), number)
        except ProcessLookupError:
            continue


def children(parent: int) -> list[str]:
    """Processes that this one has started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/" + pid + "/stat") as file:
                # The program's name is in brackets and may hold any character; the parent is the second word after it.
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(pid)
        except OSError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
