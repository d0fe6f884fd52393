"""How the check of services reads a probe's lines, and what it counts as starvation."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml

from trainyard.paths import ROOT
from trainyard_dev.e2e import latency
from trainyard_dev.e2e.checks import services
from trainyard_dev.e2e.recorder import CheckError
from trainyard_dev.report import latency_svg

WINDOW = 10.0


def lines(name: str, without: list[float], beside: list[float]) -> list[str]:
    """Requests in the middle of two windows, the first one without."""
    return [f"{name} {base + 5 + number / 100:.4f} {took}" for base, took_all in ((1000.0, without), (1010.0, beside))
            for number, took in enumerate(took_all)]  # fmt: skip


def test_requests_are_told_apart_by_the_clock() -> None:
    made = ["web 1000.5000 0.9", *lines("web", [0.1, 0.2, 0.3], [0.4, -1]), "store 1011.0000 0.7"]
    found = latency.split(made, WINDOW, 1)
    assert found["web"].without.seconds == [0.1, 0.2, 0.3], "the first second of a window counts for neither"
    assert (found["web"].beside.seconds, found["web"].beside.lost, found["web"].beside.asked) == ([0.4], 1, 2)
    assert found["store"].beside.seconds == [0.7] and found["store"].without.asked == 0


@pytest.mark.parametrize(("percent", "due"), [(50, 50), (95, 95), (99, 99), (100, 100), (0, 1)])
def test_a_percentile_is_a_measured_value(percent: float, due: float) -> None:
    assert latency.percentile([float(one) for one in range(100, 0, -1)], percent) == due


def test_nothing_measured_is_no_figure() -> None:
    with pytest.raises(CheckError, match="no request got an answer"):
        latency.percentile([], 50)


def test_slower_answers_are_told_and_no_failure() -> None:
    pairs = latency.split(lines("web", [0.001] * 100, [0.4] * 100), WINDOW, 1)
    figures = services._judged(pairs)["web"]
    assert figures["times"] == 400 and figures["beside"] == {
        "p50_ms": 400, "p95_ms": 400, "p99_ms": 400, "requests": 100, "lost": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ([0.001] * 97 + [-1] * 3, "web lost 3 of 100 requests"),
        ([1.5] * 100, "web takes 1.500 s for half of the requests, 1500 times as long as without training"),
        ([-1] * 100, "web lost 100 of 100 requests"),
    ],
)
def test_who_starves_fails(beside: list[float], said: str) -> None:
    with pytest.raises(CheckError, match=said):
        services._judged(latency.split(lines("web", [0.001] * 100, beside), WINDOW, 1))


def test_each_service_is_drawn_with_both_sides() -> None:
    side = {"p50_ms": 1.5, "p95_ms": 20, "requests": 30, "lost": 1}
    panels = {name: {"without": side, "beside": side | {"p95_ms": 321.5}} for name in ("web <1>", "store")}
    text = latency_svg.draw("Services & training", panels, ["p50_ms", "p95_ms"])
    words = " ".join("".join(one.itertext()) for one in ElementTree.fromstring(text).iter())
    assert all(one in words for one in ("web <1>", "store", "Services & training", "321.5 ms", "1 lost", "p95"))
    assert text.count("<rect") == 1 + 2 + 2 * 2 * 2


def test_the_check_takes_the_rules_from_the_profile() -> None:
    profile = yaml.safe_load((ROOT / "charts/trainyard/profiles" / f"{services.PROFILE}.yaml").read_text())
    assert set(services.PLACED) <= set(profile)
    assert profile["global"]["contract"]["teamDefaults"]["pools"] == ["gpu", "cpu"]
    for name in ("web.py", "train.py", "probe.py"):
        compile(Path(services.FLOW / name).read_text(), name, "exec")
