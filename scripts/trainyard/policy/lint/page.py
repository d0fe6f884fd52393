"""Writes docs/lint.md: the usage of lint, and every code with its meaning."""

from collections.abc import Iterator
from pathlib import Path

from trainyard.policy.lint.codes import Code, registry

PAGE = "docs/lint.md"
TEXT = Path(__file__).with_name("assets") / "lint.md"
TOPICS = {
    "TY1": "Form",
    "TY2": "How a pipeline hangs together",
    "TY3": "Images and installation",
    "TY4": "Resources, gangs and nodes",
    "TY5": "What the contract knows",
    "TY6": "Security",
    "p": "Admission rules",
}


def render() -> str:
    """The text of the page."""
    return TEXT.read_text().replace("{codes}\n", "\n".join(_topics()).rstrip() + "\n")


def _topics() -> Iterator[str]:
    for prefix, topic in TOPICS.items():
        yield f"### {topic}\n"
        yield "| code | severity | what | |"
        yield "|---|---|---|---|"
        for code in registry().values():
            if code.id.startswith(prefix):
                yield _row(code)
        yield ""


def _row(code: Code) -> str:
    level = ", ".join([str(code.severity), *(["*site*"] if code.site else []), *(["*run*"] if code.run else [])])
    return f'| <a id="{code.id}"></a>`{code.id}` | {level} | {code.title} | {code.why} |'
