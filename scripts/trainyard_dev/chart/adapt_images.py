"""Makes upstream charts pull every image by global.imageRegistry and with global.imagePullSecrets."""

import re
from pathlib import Path

from trainyard.errors import TrainyardError

_IMAGE = re.compile(r"^(?P<before>\s*(?:-\s+)?image:\s*)(?P<ref>\"[^\"\n]*\{\{.*\}\}[^\"\n]*\"|[^\s#\"].*?)\s*$", re.M)
_PIECE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_SECRETS = re.compile(
    r"^ *\{\{- (?:if|with) \.Values\.(?P<value>[\w.]*(?:image_pull_secret|imagePullSecrets)) \}\}\n"
    r"(?P<indent> +)imagePullSecrets:.*?\{\{- end \}\}$",
    re.M | re.S,
)
_CONTAINERS = re.compile(r"^(?P<indent> +)containers:$", re.M)


def adapt_images(name: str, folder: Path) -> None:
    """Rewrite each `image:` and each `imagePullSecrets:` in the templates of chart `name`.

    Raises:
        TrainyardError: an image can't be parsed, or pods have no place for pull secrets.
    """
    for file in sorted((folder / "templates").rglob("*.y*ml")):
        text = file.read_text()
        lines = len(re.findall(r"^\s*(?:-\s+)?image:", text, re.M))
        if not lines:
            continue
        text, images = _IMAGE.subn(_mirrored, text)
        text, secrets = _SECRETS.subn(lambda match: _pull_secrets(match["indent"], match["value"]), text)
        if not secrets:
            text, secrets = _CONTAINERS.subn(lambda match: f"{_pull_secrets(match['indent'])}\n{match[0]}", text)
        if images != lines or not secrets:
            raise TrainyardError(
                f"the {name} chart changed: {images} of {lines} images were recognized, and {secrets} pods",
                where=str(file.relative_to(folder)),
                hint="update chart/adapt_images.py",
            )
        file.write_text(text)


def _mirrored(match: re.Match[str]) -> str:
    """`image: {{ .A }}/{{ .B }}:{{ .C }}` as one call of the helper that applies the mirror."""
    pieces = _PIECE.split(match["ref"].strip('"'))
    pattern = "%v".join(literal.replace("%", "%%") for literal in pieces[::2])
    values = " ".join(f"({expression})" for expression in pieces[1::2])
    return f'{match["before"]}{{{{ include "trainyard.pulled" (list $ (printf "{pattern}" {values})) }}}}'


def _pull_secrets(indent: str, value: str = "") -> str:
    """The chart's own pull secrets, at the path `value` in its values, and the whole release's."""
    all_of_them = "(.Values.global.imagePullSecrets | default list)"
    if value.endswith("image_pull_secret"):
        all_of_them = f'(.Values.{value} | empty | ternary list (list (dict "name" .Values.{value}))) {all_of_them}'
    elif value:
        all_of_them = f"(.Values.{value} | default list) {all_of_them}"
    return (
        f"{indent}{{{{- with concat {all_of_them} }}}}\n"
        f"{indent}imagePullSecrets: {{{{- toYaml . | nindent {len(indent)} }}}}\n"
        f"{indent}{{{{- end }}}}"
    )
