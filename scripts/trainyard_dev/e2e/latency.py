"""What a probe measured: seconds of requests by turns with and without something beside, as percentiles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from trainyard_dev.e2e.recorder import CheckError

PERCENTILES = (50, 95, 99)


@dataclass
class LatencySamples:
    """Requests of one service in windows of one sort: seconds of those that were answered, and how many were lost."""

    seconds: list[float] = field(default_factory=list)
    lost: int = 0

    @property
    def asked(self) -> int:
        """All requests."""
        return len(self.seconds) + self.lost

    def percentile(self, percent: float) -> float:
        """The least of the measured seconds that so many percent don't exceed."""
        return percentile(self.seconds, percent)

    def figures(self) -> dict[str, float]:
        """Figures for people: milliseconds, requests, and those that were lost."""
        told: dict[str, float] = {f"p{one}_ms": round(1000 * self.percentile(one), 1) for one in PERCENTILES}
        return told | {"requests": self.asked, "lost": self.lost}


@dataclass
class Pair:
    """One service, in windows without and in windows with."""

    without: LatencySamples = field(default_factory=LatencySamples)
    beside: LatencySamples = field(default_factory=LatencySamples)

    def times(self, percent: float = 50) -> float:
        """How many times as long a request takes with it."""
        return self.beside.percentile(percent) / self.without.percentile(percent)


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank. Raises CheckError where nothing was measured."""
    if not values:
        raise CheckError("no request was answered")
    ranked = sorted(values)
    return ranked[max(0, ceil(percent / 100 * len(ranked)) - 1)]


def split(lines: Iterable[str], window: float, settling: float) -> dict[str, Pair]:
    """Lines of a probe (name, Unix seconds, seconds or -1), by name.

    Args:
        window: seconds of one; those with an odd number are the ones with something beside.
        settling: seconds after the beginning of a window of which nothing is counted.
    """
    found: dict[str, Pair] = {}
    for line in lines:
        name, began, took = line.split()
        number, into = divmod(float(began), window)
        seconds = float(took)
        pair = found.setdefault(name, Pair())
        if into < settling:
            continue
        side = pair.beside if int(number) % 2 else pair.without
        if seconds < 0:
            side.lost += 1
        else:
            side.seconds.append(seconds)
    return found
