"""Quantities of CPU and memory: rounded up to usual values, and formatted."""

import math

CPU, MEMORY = "cpu", "memory"
MIB, GIB = 1 << 20, 1 << 30
# Minimum of a proposal, and the steps of rounding up values below a bound.
LEAST = {CPU: 0.01, MEMORY: 32.0 * MIB}
STEPS: dict[str, tuple[tuple[float, float], ...]] = {
    CPU: ((1.0, 0.01), (4.0, 0.05), (math.inf, 0.1)),
    MEMORY: ((GIB, 16.0 * MIB), (8.0 * GIB, 64.0 * MIB), (math.inf, 256.0 * MIB)),
}


def rounded(resource: str, value: float) -> float:
    """The next usual quantity above the value."""
    value = max(value, LEAST[resource])
    step = next(step for bound, step in STEPS[resource] if value <= bound)
    return round(math.ceil(value / step - 1e-9) * step, 6)


def text(resource: str, value: float) -> str:
    """Quantity as in a manifest: 850m, 2, 1536Mi, 4Gi."""
    if resource == CPU:
        return f"{value:.0f}" if value == int(value) else f"{value * 1000:.0f}m"
    return f"{value / GIB:.0f}Gi" if value % GIB == 0 else f"{math.ceil(value / MIB)}Mi"


def shown(resource: str, value: float | None) -> str:
    """Measured value for people: 0.84, 1.4Gi; "-" for none."""
    if value is None:
        return "-"
    if resource == CPU:
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value / GIB:.1f}Gi" if value >= GIB else f"{value / MIB:.0f}Mi"
