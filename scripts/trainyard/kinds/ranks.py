"""Starts several ranks of a Python program on one node; passed to its pod as text: `python3 -c TEXT COUNT WORDS...`.

Each rank gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE and the master's address, as from torch's own launcher.
If one rank fails, the others are ended, and its exit code is the node's.
"""

import os
import signal
import subprocess
import sys
import time

GRACE_S = 10


def main(argv: list[str]) -> int:
    """Runs the ranks; returns the exit code of the first that failed, else 0."""
    count, words, env = int(argv[0]), argv[1:], os.environ
    # The operator counts nodes in PET_NNODES, Volcano in WORLD_SIZE.
    nodes = int(env.get("PET_NNODES") or env.get("WORLD_SIZE") or 1)
    node = int(env.get("PET_NODE_RANK") or env.get("RANK") or 0)
    env.setdefault("OMP_NUM_THREADS", "1")
    ranks: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, lambda *_: end(ranks))
    for local in range(count):
        own = dict(env, RANK=str(node * count + local), WORLD_SIZE=str(nodes * count), GROUP_RANK=str(node))
        own.update(LOCAL_RANK=str(local), LOCAL_WORLD_SIZE=str(count), GROUP_WORLD_SIZE=str(nodes))
        # Libraries such as Lightning detect a launcher by this variable, and then read the others.
        own.setdefault("TORCHELASTIC_RUN_ID", env.get("TRAINYARD_JOB", "trainyard"))
        ranks.append(subprocess.Popen([sys.executable, *words], env=own))
    code = wait(ranks, None)
    if code:
        failed = [str(node * count + local) for local, rank in enumerate(ranks) if rank.returncode]
        print("rank " + ", ".join(failed) + " ended with code " + str(code), file=sys.stderr, flush=True)
        end(ranks)
        wait(ranks, time.time() + GRACE_S)
        for rank in ranks:
            if rank.returncode is None:
                rank.kill()
    return code if code >= 0 else 128 - code


def wait(ranks: "list[subprocess.Popen[bytes]]", limit: "float | None") -> int:
    """Waits until all ranks end or, at `limit` or without one, until one fails; returns the code of a failed rank."""
    while True:
        codes = [rank.poll() for rank in ranks]
        failed = next((code for code in codes if code), 0)
        if None not in codes or (time.time() > limit if limit else failed):
            return failed
        time.sleep(0.1)


def end(ranks: "list[subprocess.Popen[bytes]]") -> None:
    """Terminates all ranks."""
    for rank in ranks:
        if rank.poll() is None:
            rank.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
