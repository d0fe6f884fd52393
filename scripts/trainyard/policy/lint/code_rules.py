"""Checks the imports of inline Python in a pod template against the modules of its image."""

from collections.abc import Iterator

from trainyard.contract import Contract, Team
from trainyard.kinds import images, imports
from trainyard.policy.lint.pods import Object, Pod
from trainyard.policy.lint.report import Issue, Path

KFP = "kfp"  # images include its executor, which steps run, even where `import kfp` would fail


def lacking(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Imports that a container's image lacks, in scripts after -c and in kfp's steps."""
    for container, path in pod.containers():
        image = images.of_reference(str(container.get("image") or ""))
        if image is None or "PYTHONPATH" in str(container.get("env")):
            continue
        for at, text in _texts(container):
            for part in dict.fromkeys(image.missing(one.module) for one in imports.of_text(text) if one.sure):
                if part and part != KFP:
                    what = f"{container.get('name') or 'main'} imports {part}, which the image {image.name} lacks"
                    with_it = next((one.name for one in images.trainers(cuda=image.cuda) if not one.missing(part)), "")
                    yield "TY304", (*path, *at), what, f"use the image {with_it or 'of yours that has it'}"


def _texts(container: Object) -> Iterator[tuple[Path, str]]:
    """Multi-line arguments, which may be programs."""
    for key in ("command", "args"):
        for index, word in enumerate(container.get(key) or []):
            if "import " in str(word) and "\n" in str(word):
                yield (key, index), str(word)
    if container.get("source"):
        yield ("source",), str(container["source"])
