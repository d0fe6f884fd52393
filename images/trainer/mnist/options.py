"""The flags that all trainers share, and the wrapper that turns an error into one sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence

from mnist.errors import TrainError

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def positive(text: str) -> int:
    """An integer above zero, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not above zero")
    return value


def share(text: str) -> float:
    """A number from 0 to 1, for argparse."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and 1")
    return value


def parser(about: str, *, lr: float, epochs: int) -> argparse.ArgumentParser:
    """A parser with the shared flags; learning rate and epochs have a default per framework."""
    flags = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    flags.add_argument("--data", required=True, help="data set: s3://bucket/prefix or a directory")
    flags.add_argument("--out", required=True, help="results: s3://bucket/prefix or a directory")
    flags.add_argument("--epochs", type=positive, default=epochs, help="passes over the training samples")
    flags.add_argument("--train-samples", type=positive, default=20000, help="training images to use")
    flags.add_argument("--batch-size", type=positive, default=128, help="images per step, over all ranks together")
    flags.add_argument("--lr", type=float, default=lr, help="learning rate")
    flags.add_argument("--min-accuracy", type=share, default=0.0, help="fail below this test accuracy")
    flags.add_argument("--threads", type=positive, default=1, help="CPU threads of each rank")
    return flags


def with_start(flags: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds a flag for the model to begin with."""
    flags.add_argument(
        "--start", default="", help="folder of a trained model to begin with: s3://bucket/prefix or a path"
    )
    return flags


def limit_threads(count: int) -> None:
    """Caps the numeric libraries' threads; call before importing them."""
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, str(count))


def early_threads(argv: Sequence[str]) -> None:
    """Applies --threads from the raw arguments, since libraries read the variables when they are imported."""
    count = "1"
    for at, word in enumerate(argv):
        if word == "--threads" and at + 1 < len(argv):
            count = argv[at + 1]
        elif word.startswith("--threads="):
            count = word.partition("=")[2]
    limit_threads(int(count) if count.isdigit() and int(count) > 0 else 1)


def check_accuracy(accuracy: float, bar: float) -> None:
    """Raises when the accuracy is below the bar."""
    if accuracy < bar:
        raise TrainError(
            f"test accuracy {accuracy:.4f} is below the bar of {bar:.4f}",
            hint="raise --epochs or --train-samples, or lower --min-accuracy",
        )


def wait_for_name(host: str, timeout_s: float = 180.0) -> None:
    """Waits until a host name resolves: a peer's DNS record appears only once its pod runs."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            socket.getaddrinfo(host, None)
            return
        except OSError:
            if time.monotonic() > end:
                raise TrainError(
                    f"the name {host} did not resolve within {timeout_s:.0f} s", hint="is its pod running?"
                ) from None
            time.sleep(0.5)


def run(main: Callable[[Sequence[str]], None], argv: Sequence[str] | None = None) -> int:
    """Runs a trainer; a TrainError becomes one line on stderr and exit code 1."""
    try:
        main(sys.argv[1:] if argv is None else argv)
    except TrainError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    return 0
