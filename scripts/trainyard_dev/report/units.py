"""Numbers with their unit, as Grafana formats them."""

from trainyard_dev.report.plain import duration

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_THOUSANDS = ("", "k", "M", "G", "T")
_BEHIND = {"celsius": " °C", "watt": " W", "reqps": "/s", "ops": "/s", "percent": " %", "short": ""}


def shown(value: float, unit: str) -> str:
    """`0.82` of `percentunit` is `82 %`; an unknown unit is appended to the number."""
    if unit == "percentunit":
        return f"{_number(value * 100)} %"
    if unit in ("bytes", "decmbytes", "Bps"):
        size = value * 1e6 if unit == "decmbytes" else value
        return _scaled(size, _BINARY, 1024) + ("/s" if unit == "Bps" else "")
    if unit in ("s", "ms"):
        seconds = value / 1000 if unit == "ms" else value
        if abs(seconds) < 1:
            return f"{_number(seconds * 1000)} ms" if seconds else "0 s"
        return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)
    return _scaled(value, _THOUSANDS, 1000).rstrip() + _BEHIND.get(unit, f" {unit}")


def _scaled(value: float, names: tuple[str, ...], base: int) -> str:
    step = 0
    while abs(value) >= (10_000 if base == 1000 and not step else base) and step < len(names) - 1:
        value, step = value / base, step + 1
    return f"{_number(value)} {names[step]}"


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"
