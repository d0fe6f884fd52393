"""A probe's measurements: seconds of requests, alternately with and without other load, as percentiles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from trainyard_dev.e2e.recorder import CheckError

PERCENTILES = (50, 95, 99)


@dataclass
class LatencySamples:
    """Requests to one service in one sort of windows: seconds of the answered ones, and the number of lost ones."""

    seconds: list[float] = field(default_factory=list)
    lost: int = 0

    @property
    def asked(self) -> int:
        """All requests."""
        return len(self.seconds) + self.lost

    def percentile(self, percent: float) -> float:
        """The lowest measured value in seconds that so many percent don't exceed."""
        return percentile(self.seconds, percent)

    def figures(self) -> dict[str, float]:
        """Figures for the report: milliseconds, requests, and lost requests."""
        told: dict[str, float] = {f"p{one}_ms": round(1000 * self.percentile(one), 1) for one in PERCENTILES}
        return told | {"requests": self.asked, "lost": self.lost}


@dataclass
class Pair:
    """One service, in windows without and with the load."""

    without: LatencySamples = field(default_factory=LatencySamples)
    beside: LatencySamples = field(default_factory=LatencySamples)

    def times(self, percent: float = 50) -> float:
        """The factor by which a request takes longer with the load."""
        return self.beside.percentile(percent) / self.without.percentile(percent)


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile by nearest rank. Raises CheckError without measurements."""
    if not values:
        raise CheckError("no request got an answer")
    ranked = sorted(values)
    return ranked[max(0, ceil(percent / 100 * len(ranked)) - 1)]


def split(lines: Iterable[str], window: float, settling: float) -> dict[str, Pair]:
    """A probe's lines (name, Unix seconds, seconds or -1) as pairs by name.

    Args:
        window: its length in seconds; windows with an odd number are those with the load.
        settling: seconds at the beginning of a window that are ignored.
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
