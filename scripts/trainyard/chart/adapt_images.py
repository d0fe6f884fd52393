"""Lets upstream charts pull every image by global.imageRegistry and with global.imagePullSecrets."""

from __future__ import annotations

import re
from pathlib import Path

from trainyard.errors import TrainyardError

_IMAGE = re.compile(r"^(?P<before>\s*(?:-\s+)?image:\s*)(?P<ref>\"[^\"\n]*\{\{.*\}\}[^\"\n]*\"|[^\s#\"].*?)\s*$", re.M)
_PIECE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_SECRETS = re.compile(
    r"^(?P<indent> +)\{\{- (?:if|with) \.Values\.(?P<value>[\w.]*(?:image_pull_secret|imagePullSecrets)) \}\}\n"
    r"\s+imagePullSecrets:.*?\{\{- end \}\}$",
    re.M | re.S,
)


def adapt_images(name: str, folder: Path) -> None:
    """Rewrite each `image:` and each `imagePullSecrets:` in the templates of chart `name`.

    Raises:
        TrainyardError: a template with images has one that is not understood, or has no pull secrets.
    """
    for file in sorted((folder / "templates").rglob("*.y*ml")):
        text = file.read_text()
        lines = len(re.findall(r"^\s*(?:-\s+)?image:", text, re.M))
        if not lines:
            continue
        text, images = _IMAGE.subn(_mirrored, text)
        text, secrets = _SECRETS.subn(_pull_secrets, text)
        if images != lines or not secrets:
            raise TrainyardError(
                f"the {name} chart changed: {images} of {lines} images and {secrets} lists of pull secrets were understood",
                where=str(file.relative_to(folder)),
                mend="look at chart/adapt_images.py",
            )
        file.write_text(text)


def _mirrored(match: re.Match[str]) -> str:
    """`image: {{ .A }}/{{ .B }}:{{ .C }}` as one call of the helper that knows the mirror."""
    pieces = _PIECE.split(match["ref"].strip('"'))
    pattern = "%v".join(literal.replace("%", "%%") for literal in pieces[::2])
    values = " ".join(f"({expression})" for expression in pieces[1::2])
    return f'{match["before"]}{{{{ include "trainyard.pulled" (list $ (printf "{pattern}" {values})) }}}}'


def _pull_secrets(match: re.Match[str]) -> str:
    """The chart's own secret or secrets, and those of the whole release."""
    indent, value = match["indent"], f".Values.{match['value']}"
    if value.endswith("image_pull_secret"):
        own = f'({value} | empty | ternary list (list (dict "name" {value})))'
    else:
        own = f"({value} | default list)"
    return (
        f"{indent}{{{{- with concat {own} (.Values.global.imagePullSecrets | default list) }}}}\n"
        f"{indent}imagePullSecrets: {{{{- toYaml . | nindent {len(indent)} }}}}\n"
        f"{indent}{{{{- end }}}}"
    )
