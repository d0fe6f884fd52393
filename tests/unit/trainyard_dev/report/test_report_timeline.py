"""The drawn timeline and the spans that come from Kubernetes objects."""

import itertools
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Any

import pytest

from trainyard.times import moment
from trainyard_dev.report import Span, palette, phases, timeline
from trainyard_dev.report.sample import sample

SVG = "{http://www.w3.org/2000/svg}"


def at(second: float) -> str:
    return datetime.fromtimestamp(1_780_000_000 + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rel(spans: list[Span]) -> list[tuple[str, float, float]]:
    return [(s.phase, s.start - 1_780_000_000, s.end - 1_780_000_000) for s in spans]


def pod(name: str = "p-0", *, created: float = 0, placed: float | None = 3, start: float | None = 8,
        end: float | None = 20, code: int = 0) -> dict[str, Any]:  # fmt: skip
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    phase = "Pending"
    if start is not None:
        state, phase = {"running": {"startedAt": at(start)}}, "Running"
    if end is not None:
        state = {"terminated": {"startedAt": at(start or 0), "finishedAt": at(end), "exitCode": code}}
        phase = "Failed" if code else "Succeeded"
    scheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": at(created),
    }
    if placed is not None:
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(placed)}
    return {
        "metadata": {"name": name, "namespace": "e2e", "uid": f"uid-{name}", "creationTimestamp": at(created)},
        "spec": {"nodeName": "worker-1"} if placed is not None else {},
        "status": {"phase": phase, "conditions": [scheduled], "containerStatuses": [{"name": "main", "state": state}]},
    }


def event(name: str, reason: str, second: float) -> dict[str, Any]:
    about = {"kind": "Pod", "name": name, "namespace": "e2e", "uid": f"uid-{name}"}
    return {"reason": reason, "involvedObject": about, "firstTimestamp": at(second), "lastTimestamp": at(second)}


# ---- spans from objects


def test_life_of_one_pod_with_events() -> None:
    events = [event("p-0", "Pulling", 4), event("p-0", "Pulled", 7), event("other", "Pulling", 1)]
    spans = phases.job_spans("train.x", [pod()], events=events)
    assert rel(spans) == [
        ("queued", 0, 3),
        ("placed", 3, 4),
        ("pulling", 4, 7),
        ("placed", 7, 8),
        ("running", 8, 20),
        ("done", 20, 20),
    ]
    assert spans[0].label == "1 pod"


def test_without_events_pulling_is_part_of_placed() -> None:
    assert rel(phases.job_spans("t.x", [pod()])) == [
        ("queued", 0, 3),
        ("placed", 3, 8),
        ("running", 8, 20),
        ("done", 20, 20),
    ]


def test_image_already_there_has_pulled_without_pulling() -> None:
    spans = phases.job_spans("t.x", [pod()], events=[event("p-0", "Pulled", 5)])
    assert "pulling" not in [s.phase for s in spans]


def test_gang_is_placed_with_its_last_member_and_counts_from_the_podgroup() -> None:
    group = {"metadata": {"creationTimestamp": at(-2)}, "spec": {"minMember": 2}}
    pods = [pod("a", placed=3, start=6, end=30), pod("b", placed=5, start=9, end=28)]
    spans = phases.job_spans("t.x", pods, podgroup=group)
    assert rel(spans) == [("queued", -2, 5), ("placed", 5, 9), ("running", 9, 30), ("done", 30, 30)]
    assert spans[0].label == "2 pods, all or none of 2"


def test_gang_with_a_missing_member_stays_queued() -> None:
    group = {"metadata": {"creationTimestamp": at(0)}, "spec": {"minMember": 3}}
    spans = phases.job_spans("t.x", [pod("a"), pod("b")], podgroup=group, until=1_780_000_040.0)
    assert rel(spans) == [("queued", 0, 40)]


def test_refused_gang_is_queued_until_the_end() -> None:
    pods = [pod(n, placed=None, start=None, end=None) for n in "abc"]
    assert rel(phases.job_spans("gang.refused", pods, until=1_780_000_015.0)) == [("queued", 0, 15)]


def test_running_pod_is_closed_by_until_and_open_without() -> None:
    live = pod(end=None)
    assert rel(phases.job_spans("t.x", [live], until=1_780_000_018.0))[-1] == ("running", 8, 18)
    assert "running" not in [s.phase for s in phases.job_spans("t.x", [live])]


def test_failed_pod_ends_in_failed() -> None:
    assert rel(phases.job_spans("t.x", [pod(code=137)]))[-1] == ("failed", 20, 20)


def test_grain_of_a_second_never_gives_negative_or_overlapping_spans() -> None:
    moments: list[float | None] = [0, 1, 2, None]
    for placed, pull, pulled, run, end in itertools.product(moments, repeat=5):
        life = phases.Lifetimes(1, placed, pull, pulled, run, end)
        spans = life.spans("a.b", "", 3)
        assert all(a.end <= b.start for a, b in itertools.pairwise(spans))


@pytest.mark.parametrize("empty", [[], [{}], [{"metadata": {}, "status": {"containerStatuses": None}}]])
def test_objects_without_content_give_nothing(empty: list[dict[str, Any]]) -> None:
    assert phases.job_spans("t.x", empty) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01T00:01:00Z", 60),
        ("1970-01-01T00:01:00.250000Z", 60.25),
        ("1970-01-01T01:00:00+01:00", 0),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_moment(text: str | None, value: float | None) -> None:
    assert moment(text) == value


# ---- drawing


def texts(root: ET.Element, kind: str) -> list[ET.Element]:
    return [t for t in root.iter(f"{SVG}text") if t.get("class") == kind]


@pytest.mark.parametrize("run", [sample(), sample(warm=True), sample(failing=True)])
def test_svg_is_well_formed_and_inside_its_box(run) -> None:  # type: ignore[no-untyped-def]
    root = ET.fromstring(timeline.document(run.spans, run.started, run.ended))
    assert root.tag == f"{SVG}svg"
    width, height = map(float, root.get("viewBox", "").split()[2:])
    assert root.find(f"{SVG}title") is not None
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("x"):
            assert float(rect.get("x", "0")) >= 0
            assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= width
    assert all(float(t.get("y", "0")) <= height for t in root.iter(f"{SVG}text"))
    bars = [g for g in root.iter(f"{SVG}g") if g.get("class") == "bar"]
    assert all(g.find(f"{SVG}title") is not None for g in bars)
    lanes = {"".join(t.itertext()) for t in texts(root, "lane")}
    assert any(lane.startswith("train.pytorchjob") for lane in lanes)
    assert {t.text for t in texts(root, "key")} >= {"queued", "placed", "pulling", "running", "done"}


def test_labels_do_not_overlap() -> None:
    run = sample()
    root = ET.fromstring(timeline.document(run.spans, run.started, run.ended))
    for panel in root.findall(f"{SVG}g"):
        marks = sorted(float(t.get("x", "0")) for t in texts(panel, "tick"))
        assert all(b - a > 45 for a, b in itertools.pairwise(marks))
        rows: dict[str, list[tuple[float, float]]] = {}
        for text in texts(panel, "in") + texts(panel, "total"):
            x, size = float(text.get("x", "0")), len(text.text or "") * 6.0
            left = x - size / 2 if text.get("class") == "in" else x
            rows.setdefault(text.get("y", ""), []).append((left, left + size))
        for boxes in rows.values():
            boxes.sort()
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(boxes))


def test_short_jobs_in_a_long_run_get_their_own_panel() -> None:
    cold, warm = sample(), sample(warm=True)
    assert "zoomed in to" in timeline.render(cold.spans, cold.started, cold.ended)
    close = [s for s in warm.spans if "." in s.lane or s.lane == "install"]
    assert "zoomed in to" not in timeline.render(close, min(s.start for s in close), max(s.end for s in close))


def test_overlapping_spans_of_a_lane_get_rows() -> None:
    spans = [
        Span("t.x", "running", 0, 10, "a"),
        Span("t.x", "running", 5, 15, "b"),
        Span("t.x", "running", 10, 20, "c"),
    ]
    root = ET.fromstring(timeline.render(spans, 0, 20))
    ys = [r.get("y") for g in root.iter(f"{SVG}g") if g.get("class") == "bar" for r in g.findall(f"{SVG}rect")]
    assert len(set(ys)) == 2


def test_no_spans_and_no_time() -> None:
    assert "No time was recorded" in timeline.document([], 5, 5)
    ET.fromstring(timeline.document([], 5, 5))
    ET.fromstring(timeline.document([Span("a", "b", 5, 5)], 5, 5))
    ET.fromstring(timeline.document([Span("a", "b", 0, 900_000)], 0, 900_000))


@pytest.mark.parametrize("end", [0.3, 1, 7, 59, 61, 300, 1799, 3601, 90_000, 5_000_000])
def test_ticks_are_round_and_few(end: float) -> None:
    found = timeline.ticks(0, end)
    assert 2 <= len(found) <= 9
    assert found[0] == 0
    assert found[-1] <= end


def contrast(one: str, two: str) -> float:
    def light(colour: str) -> float:
        parts = [int(p, 16) / 255 for p in re.findall("..", colour[1:])]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", sorted({*palette.FREE, *palette.KNOWN.values()} - {""}))
def test_colours_can_be_read(colour: str) -> None:
    assert contrast(colour, "#ffffff") >= 4.5
    assert contrast(colour, "#161c24") >= 2.5


def test_a_lane_with_a_gap_totals_its_work_only() -> None:
    root = ET.fromstring(timeline.render([Span("cluster", "up", 0, 40), Span("cluster", "removing", 90, 100)], 0, 100))
    assert [t.text for t in texts(root, "total")] == ["50 s"]


def test_a_dozen_free_phases_have_a_colour_each() -> None:
    found = palette.colours([f"step {n}" for n in range(14)])
    assert len(set(found.values())) == 14
