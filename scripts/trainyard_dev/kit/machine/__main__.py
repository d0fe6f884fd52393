"""Makes a cluster of one node out of the kit's parts, and shows what runs on its GPU.

The exit code is 0 when all is done, 1 after a failed step, 3 without a GPU, and 75 if the same call must follow.
"""

import argparse
import sys
from pathlib import Path

from machine import node, proof, record

flags = argparse.ArgumentParser(prog="machine", description=__doc__)
flags.add_argument("--root", type=Path, default=Path("/kit"), help="the folder that has the parts")
flags.add_argument("--out", type=Path, help="where the results go after each step; default: ROOT/out")
flags.add_argument("--mock", action="store_true", help="use a mock GPU, which computes nothing")
flags.add_argument("--seconds", type=float, default=400, help="begin no step later in this call")
args = flags.parse_args()
kit = node.Kit(args.root, args.mock)
book = record.Book(args.root, args.out or args.root / "out", mock=args.mock, seconds=args.seconds)
sys.exit(book.run(kit, [*node.STEPS, *proof.STEPS], needed=len(node.STEPS), again=("device", "node")))
