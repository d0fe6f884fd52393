"""Amounts of CPU and memory: rounded up to what people write, and written."""

import math

CPU, MEMORY = "cpu", "memory"
MIB, GIB = 1 << 20, 1 << 30
# The least that is proposed, and the steps to which an amount below a bound is rounded up.
LEAST = {CPU: 0.01, MEMORY: 32.0 * MIB}
STEPS: dict[str, tuple[tuple[float, float], ...]] = {
    CPU: ((1.0, 0.01), (4.0, 0.05), (math.inf, 0.1)),
    MEMORY: ((GIB, 16.0 * MIB), (8.0 * GIB, 64.0 * MIB), (math.inf, 256.0 * MIB)),
}


def rounded(resource: str, value: float) -> float:
    """The next amount above that people write."""
    value = max(value, LEAST[resource])
    step = next(step for bound, step in STEPS[resource] if value <= bound)
    return round(math.ceil(value / step - 1e-9) * step, 6)


def text(resource: str, value: float) -> str:
    """As a manifest has it: 850m, 2, 1536Mi, 4Gi."""
    if resource == CPU:
        return f"{value:.0f}" if value == int(value) else f"{value * 1000:.0f}m"
    return f"{value / GIB:.0f}Gi" if value % GIB == 0 else f"{math.ceil(value / MIB)}Mi"


def shown(resource: str, value: float | None) -> str:
    """As people read a measured amount: 0.84, 1.4Gi; "-" for none."""
    if value is None:
        return "-"
    if resource == CPU:
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value / GIB:.1f}Gi" if value >= GIB else f"{value / MIB:.0f}Mi"
