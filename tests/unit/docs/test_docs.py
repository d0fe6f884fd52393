"""Documents match the code: links, commands, options, verbs and files that they name exist."""

import re
import shlex

import click
import pytest

from trainyard.components import registry
from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard_dev.bench import serving, summary, tables
from trainyard_dev.cli import trainyard
from trainyard_dev.e2e import selection

TOPS = (
    ".ci/", ".github/", "bin/", "charts/", "docs/", "examples/", "images/", "manifests/", "pipelines/",
    "policies/", "scripts/", "tests/", "tools/",
)  # fmt: skip
FILES = [file.relative_to(ROOT).as_posix() for top in TOPS for file in (ROOT / top).rglob("*")]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / f for f in FILES if f.endswith(".md") and "/assets/" not in f),
]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(DOCUMENTS)}
PRESENT = [name for name in TEXTS if name != "CHANGELOG.md"]  # what a release had may be gone
MOST_LINES = 150  # of the README
MAKEFILE = (ROOT / "Makefile").read_text()
VERBS, SETTINGS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.M)), set(re.findall(r"\$\(([A-Z_]+)", MAKEFILE))
# Files of others that a page names.
ELSEWHERE = ("simulator/draw_fig9-10.py",)


def links(text: str) -> list[tuple[str, str]]:
    """Target and anchor of each link; code has none."""
    prose = re.sub(r"`[^`\n]+`", "`code`", text)
    return re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose)


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    for target, _ in links(TEXTS[name]):
        if target and not target.startswith("http"):
            assert (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", PRESENT)
def test_commands_and_options_exist(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in a line of its own is parsed as if it ran; of one in a sentence the options must exist."""
    monkeypatch.setattr(click.Path, "convert", lambda self, value, parameter, context: value)  # files of the reader
    text = re.sub(r"\\\n\s*", "", TEXTS[name])  # what goes on in the next line
    text = re.sub(r"\$\((.+?)\)", r"x\n    \1\n    ", text)  # a command within another
    for before, line in re.findall(
        r"(^ {4}!?(?:bin/)?|bin/|`)trainyard ([a-z][a-z0-9]+\b(?! is\b)[^`|#)\n;&<>]*)", text, re.M
    ):
        words = shlex.split(line)
        context, command = click.Context(trainyard, **trainyard.context_settings), trainyard
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words[0].rstrip(",.:;"))  # in a sentence
            found = found or getattr(command, "usual", None)  # what is no command may be its argument
            assert found, line
            command, words = found, words[1:] if found is not getattr(command, "usual", None) else words
        if before.startswith("    ") and "…" not in line:
            command.make_context(command.name, list(words), parent=context)  # its ways to ask for help are inherited
        options = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for word in words[: words.index("--")] if "--" in words else words:
            assert not word.startswith("-") or word == "-" or word.partition("=")[0] in options, line


@pytest.mark.parametrize("name", PRESENT)
def test_make_verbs_and_checks_exist(name: str) -> None:
    for words in re.findall(r"(?:^ {4}|`)make ((?:[a-z][a-z0-9-]*)(?: [a-z][a-z0-9-]*)*)", TEXTS[name], re.M):
        for verb in words.split():
            assert verb in VERBS, f"make {words}"
    for words in re.findall(r"(?:^ {4}|`)make ((?:[\w./-]+ )*[A-Z]+=[^`\n]*)", TEXTS[name], re.M):
        assert set(re.findall(r"\b([A-Z_]+)=", words)) <= {*SETTINGS, "TRAINYARD_DATA"}, words
    for word in re.findall(r"\bONLY=([a-z][\w.,-]*\w)", TEXTS[name]):
        try:
            selection.chosen(word.split(","), full=False)
        except UsageError as error:
            assert word == "nodes.quiet", error  # the one that the reader writes


@pytest.mark.parametrize("name", PRESENT)
def test_files_exist(name: str) -> None:
    """A path from the root; the end of a source file's path; of a folder's, in pages for contributors."""
    ends = r"\.(py|go|tpl|patch|lock|mod|sum|toml)$" + (r"|/$" if "contributing" in name.lower() else "")
    code = "\n".join(re.findall(r"^ {4}.*", TEXTS[name], re.M))
    paths = re.findall(r"`([\w.<>*-][\w.<>*/-]*)`", TEXTS[name])
    paths += re.findall(rf"(?:^|[\s=])((?:{'|'.join(map(re.escape, TOPS))})[\w.*/-]+)", code)
    for path in set(paths) - set(ELSEWHERE):
        rooted = path.startswith(TOPS)
        if (rooted or re.search(ends, path)) and not path.startswith("out/") and not (ROOT / path).exists():
            wanted = re.sub(r"<[a-z]+>|\\\*", "[^/]+", re.escape(path.rstrip("/")))
            assert any(re.search(rf"{'^' if rooted else '(^|/)'}{wanted}$", file) for file in FILES), path


def anchors(text: str) -> set[str]:
    """Valid fragments of links to the page: its own anchors, and its headings as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return set(re.findall(r'<a id="([^"]+)">', text)) | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("name", TEXTS)
def test_links_into_pages_meet_a_heading_or_an_anchor(name: str) -> None:
    for target, anchor in links(TEXTS[name]):
        if not anchor or target.startswith("http"):
            continue
        page = (ROOT / name).parent.joinpath(target).resolve() if target else ROOT / name
        assert anchor in anchors(page.read_text()), f"{target}#{anchor}"


def test_every_page_is_linked_from_another() -> None:
    linked = {
        (ROOT / name).parent.joinpath(target).resolve()
        for name, text in TEXTS.items()
        for target, _ in links(text)
        if target and not target.startswith("http")
    }
    for document in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/*/README.md")]:
        assert document in linked, document.name


def test_every_page_begins_with_what_its_reader_can_do() -> None:
    for folder in ("docs", "docs/contributing", "charts/*"):
        for page in ROOT.glob(f"{folder}/*.md"):
            assert re.match(r"# .+\n\nAfter this page you (can|know) ", page.read_text()), page.name


def test_the_picture_has_the_components_of_the_registry() -> None:
    boxes = r'<rect class="(core|option)"[^>]*>\s*<text class="part"[^>]*>([^<]+)<'
    shown = {name: kind for kind, name in re.findall(boxes, (ROOT / "docs/architecture.svg").read_text())}
    assert shown == {one.name: "option" if one.optional else "core" for one in registry.all_components()}


@pytest.mark.parametrize("name", PRESENT)
def test_imports_of_the_product_work(name: str) -> None:
    for line in re.findall(r"^ {4}(from trainyard[\w.]* import [\w, ]+)$", TEXTS[name], re.M):
        exec(line, {})


def test_every_profile_is_described() -> None:
    for profile in (ROOT / "charts/trainyard/profiles").glob("*.yaml"):
        assert f"| `{profile.stem}` |" in TEXTS["README.md"]


def test_every_example_job_is_described() -> None:
    for job in (ROOT / "manifests/jobs").glob("*.yaml"):
        row, words = f" | `{job.name}` |\n", f"`{job.name}`, two pods"
        assert row in TEXTS["docs/kinds.md"] or words in TEXTS["docs/examples.md"]


def test_messages_that_are_explained_are_really_given() -> None:
    table = re.findall(r"^\| `([^`]+)` \|", TEXTS["docs/troubleshooting.md"].partition("## While building")[0], re.M)
    code = "\n".join(path.read_text() for path in (ROOT / "scripts").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    assert len(table) > 5
    for message in table:
        for part in message.split("…"):
            assert part.strip() in code, message


@pytest.mark.parametrize(
    ("row", "metric"), [("GPUs allocated, %", "allocated@100"), ("pods of 8 GPUs refused, %", "refused8@100")]
)
def test_how_it_works_has_the_figures_of_the_benchmarks(row: str, metric: str) -> None:
    figures = summary.read().figures
    found = [
        tables.find(figures, "default@1", column, metric)
        for column in ("kube-default", "volcano-default", "kube-tuned", "ours")
    ]
    assert all(one and len(one.seeds) >= 5 for one in found)
    reported = " | ".join(tables.number(one.value) for one in found if one)
    assert f"| {row} | {reported} |" in TEXTS["docs/how-it-works.md"]
    if metric == "allocated@100":
        assert "with 0.2.0" in TEXTS["README.md"].lower() and "`overlays/packed.yaml`" in TEXTS["README.md"]
        first, *_, last = reported.split(" | ")
        assert f"{last} % of the GPUs" in TEXTS["README.md"]
        assert f"kube-scheduler allocated {first} %" in TEXTS["README.md"]


@pytest.mark.parametrize("bench", [serving.NAME, serving.WITH_GPU])
def test_serving_has_the_figures_that_were_measured(bench: str) -> None:
    assert serving.table(summary.read(benches=[bench]).figures).strip() in TEXTS["docs/serving.md"]


def test_the_readme_is_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) < MOST_LINES
