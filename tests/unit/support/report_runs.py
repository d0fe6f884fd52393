"""Runs of few checks, one whose every text would break a page that escapes too little, and a reader of pages."""

from html.parser import HTMLParser

from trainyard_dev.report import Check, Gpu, Run, Span

NASTY = "<script>alert('x')</script> & \"q\" $title ${css} \x1b[31mred\x00"
FILES = {"report.html", "timeline.svg", "junit.xml", "summary.json"}
VOID = {"meta", "link", "br", "hr", "img", "input"}


def run_of(*checks: Check) -> Run:
    return Run(100.0, 160.0, {}, {}, "build", Gpu("mock", "4 GPUs"), checks=list(checks))


def passed(name: str = "a.b") -> Check:
    return Check(name, "title", "passed", seconds=1.5)


def nasty_run() -> Run:
    run = run_of(
        Check("a.one", NASTY, "failed", NASTY, 1.0, {NASTY: NASTY, "devices": {NASTY: [NASTY]}, "accuracy": NASTY}),
        Check("a.two", NASTY, "skipped", NASTY),
    )
    run.versions = {NASTY: NASTY}
    run.images = {NASTY: NASTY}
    run.environment = {NASTY: NASTY}
    run.mocks = [NASTY]
    run.cause = NASTY
    run.image_source = NASTY
    run.gpu = Gpu("mock", NASTY)
    run.spans = [Span(NASTY, NASTY, 100, 120, NASTY), Span("train.x", "queued", 130, 131, NASTY)]
    return run


class Page(HTMLParser):
    """A parser that checks that tags are balanced and collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
