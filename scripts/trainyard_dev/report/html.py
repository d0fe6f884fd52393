"""The run as one self-contained web page: no script, no external resource, every value escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from string import Template
from typing import Any

from trainyard_dev.report import groups, timeline
from trainyard_dev.report.assets import text as asset
from trainyard_dev.report.model import Check, Run
from trainyard_dev.report.plain import clean, duration, figure, words

SYMBOLS = {"passed": "\u2713", "failed": "\u2717", "skipped": "\u2013"}
SOURCES = {"build": "built here", "pull": "pulled from registries"}
LONG = 160  # characters of a figure that are shown without unfolding it
OWN_COLUMNS = ("accuracy", "devices")
_GPU_ID = re.compile(r"((?:MIG-)?GPU-[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def render(run: Run) -> str:
    """The whole page as text."""
    verdict = run.verdict
    state = "passed" if verdict.ok else "failed"
    return Template(asset("report.html")).substitute(
        title=e(f"trainyard e2e: {verdict.word}, {verdict}"),
        css=asset("report.css"),
        state=state,
        symbol=SYMBOLS[state],
        verdict=e(verdict.word),
        counts=e(verdict),
        lede=e(_lede(run)),
        failures=_failures(run),
        facts=_facts(run),
        untested=_untested(run),
        checks=_checks([c for c in run.checks if c.group != groups.ATTACK]),
        attacks=_attacks([c for c in run.checks if c.group == groups.ATTACK]),
        timeline=timeline.render(run.spans, run.started, run.ended),
        spans=_spans(run),
        versions=_pairs(run.versions, "Component", "Version", "Versions under test"),
        images=_pairs(run.images, "Image", "From", "Images that ran"),
        image_count=len(run.images),
        environment=_pairs(run.environment, "What", "Value", "The machine this ran on"),
    )


def e(value: object) -> str:
    """``value`` as text that is safe in HTML, also inside an attribute."""
    return escape(clean(value), quote=True)


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%-d %B %Y, %H:%M UTC")


def _lede(run: Run) -> str:
    if run.verdict.ok:
        return f"Every check that ran passed, in {duration(run.seconds)}."
    if run.verdict.failed:
        return f"{run.verdict.failed} of {len(run.checks)} checks failed; the run took {duration(run.seconds)}."
    return "No check ran to its end, so this run shows nothing about the platform."


def _failures(run: Run) -> str:
    failed = [c for c in run.checks if c.status == "failed"]
    if not failed and not run.cause:
        return ""
    cause = f'<p class="cause"><strong>Probable cause:</strong> {e(run.cause)}</p>' if run.cause else ""
    items = "".join(f'<li><a href="#{e(c.id)}"><code>{e(c.id)}</code></a> {e(c.reason)}</li>' for c in failed)
    more = "Events, logs and objects of the cluster lie in the folder <code>diagnosis/</code> beside this page."
    return (
        '<section class="box bad" aria-labelledby="h-fail"><h2 id="h-fail">What went wrong</h2>'
        f'{cause}<ul>{items}</ul><p class="soft">{more}</p></section>'
    )


def _facts(run: Run) -> str:
    facts = (
        ("Started", _when(run.started), ""),
        ("Took", duration(run.seconds), ""),
        ("GPUs", run.gpu.kind, run.gpu.description),
        (
            "Images",
            SOURCES.get(run.image_source, run.image_source),
            f"{len(run.images)} references" if run.images else "",
        ),
    )
    return "".join(
        f"<div><dt>{e(name)}</dt><dd>{e(value)}{f'<small>{e(note)}</small>' if note else ''}</dd></div>"
        for name, value, note in facts
    )


def _untested(run: Run) -> str:
    skipped = [c for c in run.checks if c.status == "skipped"]
    lines = [e(m) for m in run.mocks]
    lines += [f"<code>{e(c.id)}</code> was skipped: {e(c.reason)}" for c in skipped]
    if run.gpu.kind == "mock" and not any("cuda" in m.lower() for m in run.mocks):
        lines.insert(0, "The GPUs are mock: allocation, scheduling and recovery are proved, CUDA and NCCL are not.")
    if not lines:
        return "<p>Nothing: every part ran for real and no check was skipped.</p>"
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


def _checks(checks: list[Check]) -> str:
    if not checks:
        return "<p>No check was recorded.</p>"
    own = [name for name in OWN_COLUMNS if any(name in c.figures for c in checks)]
    heads = ["Check", "Result", "Time", *(words(n).capitalize() for n in own), "Other figures"]
    head = "".join(f'<th scope="col" role="columnheader">{e(h)}</th>' for h in heads)
    bodies = "".join(
        f'<tbody role="rowgroup">{_group(group, inside, len(heads))}{"".join(_check(c, own) for c in inside)}</tbody>'
        for group, inside in groups.grouped(checks).items()
    )
    return (
        '<table class="checks" role="table"><caption class="hidden">Every check with its result and figures</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>{bodies}</table>'
    )


def _group(group: str, checks: list[Check], columns: int) -> str:
    return (
        f'<tr role="row" class="group"><th scope="rowgroup" role="rowheader" colspan="{columns}">'
        f'{e(groups.title(group))} <span class="soft">{groups.passed_of(checks)}</span></th></tr>'
    )


def _attacks(checks: list[Check]) -> str:
    """The section of what a member of one team tried against others; nothing where no attack was tried."""
    if not checks:
        return ""
    heads = ("Attack", "Result", "Who", "Tried", "Refused by", "Message")
    head = "".join(f'<th scope="col" role="columnheader">{h}</th>' for h in heads)
    rows = []
    for check in checks:
        told = groups.refusal(check)
        pill = {"passed": "refused", "failed": "not refused", "skipped": "skipped"}[check.status]
        cells = [
            f'<th scope="row" role="rowheader"><code>{e(told["attack"])}</code></th>',
            _cell("Result", f'<span class="pill {check.status}">{SYMBOLS[check.status]} {pill}</span>'),
            _cell("Who", e(told["who"])),
            _cell("Tried", e(told["tried"])),
            _cell("Refused by", e(told["refused_by"])),
            _cell("Message", e(told["message"])),
        ]
        rows.append(f'<tr role="row" id="{e(check.id)}">{"".join(cells)}</tr>')
    return (
        '<section aria-labelledby="h-attacks"><h2 id="h-attacks">'
        f'{e(groups.title(groups.ATTACK))} <span class="soft">{groups.passed_of(checks)}</span></h2>'
        '<p class="soft">Each was a real request, with no more rights than the one who tried has.</p>'
        '<table class="checks attacks" role="table"><caption class="hidden">Attacks and who refused them</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table></section>'
    )


def _check(check: Check, own: list[str]) -> str:
    reason = f'<p class="reason">{e(check.reason)}</p>' if check.reason else ""
    name = f'<code>{e(check.id)}</code><span class="name">{e(check.title)}</span>{reason}'
    cells = [
        f'<th scope="row" role="rowheader">{name}</th>',
        _cell("Result", f'<span class="pill {check.status}">{SYMBOLS[check.status]} {check.status}</span>'),
        _cell("Time", e(duration(check.seconds)) if check.seconds else "", "num"),
    ]
    for key in own:
        style = "num" if key == "accuracy" else "devices"
        cells.append(_cell(words(key).capitalize(), _figure(check.figures.get(key, "")), style))
    rest = {k: v for k, v in check.figures.items() if k not in own}
    chips = "".join(f"<div><dt>{e(words(k))}</dt><dd>{_figure(v)}</dd></div>" for k, v in rest.items())
    cells.append(_cell("Other figures", f'<dl class="chips">{chips}</dl>' if chips else ""))
    return f'<tr role="row" id="{e(check.id)}">{"".join(cells)}</tr>'


def _cell(label: str, content: str, kind: str = "") -> str:
    kinds = f"{kind} blank".strip() if not content else kind
    attribute = f' class="{kinds}"' if kinds else ""
    return f'<td role="cell" data-label="{e(label)}"{attribute}><div>{content}</div></td>'


def _figure(value: Any) -> str:
    """A figure; a map (devices for each pod, say) becomes one line an entry."""
    if isinstance(value, Mapping):
        return "".join(f'<span class="line"><b>{e(k)}</b> {_short(figure(v))}</span>' for k, v in value.items())
    text = figure(value)
    if len(text) > LONG or "\n" in text:
        first = text.strip().splitlines()[0][:60] if text.strip() else ""
        return f"<details><summary>{e(first)} …</summary><pre>{e(text)}</pre></details>"
    return _short(text)


def _short(text: str) -> str:
    """``text`` with the long ids of GPUs cut to their first block; the whole id is in the tooltip and in the data."""
    parts, last = [], 0
    for match in _GPU_ID.finditer(text):
        parts.append(e(text[last : match.start()]))
        parts.append(f'<abbr title="{e(match[0])}">{e(match[1])}</abbr>')
        last = match.end()
    return "".join(parts) + e(text[last:])


def _pairs(values: Mapping[str, Any], left: str, right: str, caption: str) -> str:
    if not values:
        return '<p class="soft">Nothing was recorded.</p>'
    rows = "".join(f'<tr><th scope="row">{e(k)}</th><td>{e(figure(v))}</td></tr>' for k, v in values.items())
    return (
        f'<table class="pairs"><caption class="hidden">{e(caption)}</caption>'
        f'<thead><tr><th scope="col">{e(left)}</th><th scope="col">{e(right)}</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _spans(run: Run) -> str:
    head = "".join(f'<th scope="col">{h}</th>' for h in ("Lane", "Phase", "From", "To", "Took", "Note"))
    return (
        f'<table class="spans"><caption class="hidden">The timeline as numbers</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(_span_rows(run))}</tbody></table>"
    )


def _span_rows(run: Run) -> Iterable[str]:
    for span in sorted(run.spans, key=lambda s: s.start):
        numbers = (f"{span.start - run.started:.1f} s", f"{span.end - run.started:.1f} s", duration(span.seconds))
        cells = "".join(f'<td class="num">{n}</td>' for n in numbers)
        yield f'<tr><th scope="row">{e(span.lane)}</th><td>{e(span.phase)}</td>{cells}<td>{e(span.label)}</td></tr>'
