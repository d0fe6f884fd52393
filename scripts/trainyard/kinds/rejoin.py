"""Runs torchrun on one node of an elastic job; passed to its pod as text: `python3 -c TEXT WORDS...`.

A torchrun that is terminated closes the rendezvous for the remaining nodes, too. So when this pod has to go, its
torchrun is killed before it can do that, its ranks are terminated, and the others rejoin without them.
If the rendezvous pod is gone, this pod ends with a code that makes the operator create it again: it
then queues behind the rendezvous pod for its GPUs.
"""

import os
import signal
import socket
import subprocess
import sys
import time

GRACE_S = 20
ROUNDS, LONG_S = 3, 600  # failures in a row that end the pod; a run longer than LONG_S restarts the count
AWAY_S = 20
ANEW = 128 + signal.SIGUSR1  # above 127: by the job's restart policy the pod is created again instead of failed


def main(words: list[str]) -> int:
    """Runs the command until it succeeds, fails for good, or its rendezvous is gone; returns the pod's exit code."""
    # Otherwise a node that joins later waits for data sent only to nodes of an earlier round (torch 2.4 to 2.6).
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    place = os.environ.get("PET_RDZV_ENDPOINT", "")
    failed = 0
    while True:
        began = time.time()
        agent = subprocess.Popen(words)
        signal.signal(signal.SIGTERM, lambda *_, agent=agent: leave(agent))
        code = agent.wait()
        if code == 0:
            return 0
        if place and place.rpartition(":")[0] != socket.gethostname() and is_away(place):
            print("the rendezvous pod " + place + " is gone", file=sys.stderr, flush=True)
            return ANEW
        failed = 1 if time.time() - began > LONG_S else failed + 1
        if failed >= ROUNDS:
            return code if code >= 0 else 128 - code


def is_away(place: str) -> bool:
    """Whether no server accepts connections at `place` (host:port) for AWAY_S seconds."""
    host, _, port = place.rpartition(":")
    end = time.time() + AWAY_S
    while time.time() < end:
        try:
            socket.create_connection((host, int(port)), timeout=3).close()
            return False
        except OSError:
            time.sleep(1)
    return True


def leave(agent: "subprocess.Popen[bytes]") -> None:
    """Kills torchrun, ends its ranks, and exits."""
    ranks = children(agent.pid)
    agent.kill()
    send(ranks, signal.SIGTERM)
    end = time.time() + GRACE_S
    while time.time() < end and any(os.path.exists("/proc/" + pid) for pid in ranks):
        time.sleep(0.1)
    send(ranks, signal.SIGKILL)
    os._exit(128 + signal.SIGTERM)


def send(pids: list[str], number: int) -> None:
    """Sends a signal to the processes that still exist."""
    for pid in pids:
        try:
            os.kill(int(pid), number)
        except ProcessLookupError:
            continue


def children(parent: int) -> list[str]:
    """Ids of the child processes of `parent`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/" + pid + "/stat") as file:
                # The program's name is in brackets and may contain any character; the parent is the second word after.
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(pid)
        except OSError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
