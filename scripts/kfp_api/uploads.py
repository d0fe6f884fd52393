"""The text of a pipeline as clients send it: a file, an archive with one, or JSON within a body."""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import yaml

from kfp_api.errors import RefusalError, invalid
from kfp_api.records import LARGEST

ENDINGS = (".yaml", ".yml", ".json")
MOST = 100  # files of an archive
DEEPEST = 100  # of nested collections
PARTS = 60_000  # scalars: one of 500 kB that kfp compiles has 15,000
LONGEST = 1000  # digits of a number: YAML's 1:1:1:… takes the square of their time
NUMBER = re.compile(rf"[-+0-9a-fA-FxXo_.:]{{{LONGEST},}}")


def content(files: Mapping[str, tuple[str, bytes]]) -> str:
    """The text of the uploaded file. Raises RefusalError: what is wrong with it."""
    if "uploadfile" not in files:
        raise invalid("no file: upload it as multipart form data, as the part uploadfile")
    data = files["uploadfile"][1]
    try:
        if data[:2] == b"PK":
            data = _of_zip(data)
        elif data[:2] == b"\x1f\x8b":
            data = _of_tar(data)
    except RefusalError:
        raise
    except Exception:  # whatever the archive's libraries say to an archive of any content
        raise invalid("the archive can't be unpacked; upload .yaml, .zip or .tar.gz") from None
    if len(data) > LARGEST:
        raise invalid(f"the pipeline is larger than {LARGEST >> 20} MiB")
    try:
        return plain(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise invalid("the pipeline is not a text in UTF-8") from None


def documents(spec: Any) -> str:
    """The text of a pipeline that a body brings, alone or with the platform's document. Raises RefusalError."""
    if not isinstance(spec, dict):
        raise invalid("pipeline_spec is not an object")
    parts = [spec[key] for key in ("pipeline_spec", "platform_spec") if spec.get(key)] or [spec]
    found = "\n---\n".join(json.dumps(part) for part in parts)
    if len(found) > LARGEST:
        raise invalid(f"the pipeline is larger than {LARGEST >> 20} MiB")
    return plain(found)


def plain(text: str) -> str:
    """The text, if it is a YAML without aliases: a few lines of them stand for gigabytes. Raises RefusalError."""
    deep = parts = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):
                raise invalid("the pipeline has YAML aliases (*name); write the values out, as kfp's compiler does")
            parts += isinstance(event, yaml.ScalarEvent)
            if parts > PARTS:
                raise invalid(f"the pipeline has more than {PARTS:,} values; split it")
            if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and NUMBER.fullmatch(event.value):
                raise invalid(f"the pipeline has a number of more than {LONGEST} digits, on line {_line(event)}")
            deep += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if deep > DEEPEST:
                raise invalid(f"the pipeline nests more than {DEEPEST} collections, on line {_line(event)}")
    except (yaml.YAMLError, ValueError):
        pass  # the loader says where
    return text


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _of_zip(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        chosen = _only([one.filename for one in archive.infolist()[: MOST + 1]])
        if archive.getinfo(chosen).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise invalid("the archive is compressed in another way than deflate, which can't be limited")
        with archive.open(chosen) as file:
            return file.read(LARGEST + 1)


def _of_tar(data: bytes) -> bytes:
    unpack = zlib.decompressobj(wbits=31)
    whole = unpack.decompress(data, 2 * LARGEST)
    with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as archive:
        found = {one.name: one for one in archive.getmembers()[: MOST + 1] if one.isfile()}
        file = archive.extractfile(found[_only(list(found))])
        return file.read(LARGEST + 1) if file else b""


def _only(names: list[str]) -> str:
    """The pipeline among the files of an archive. Raises RefusalError."""
    found = [name for name in names if name.lower().endswith(ENDINGS)]
    preferred = [name for name in found if name.rpartition("/")[2] == "pipeline.yaml"] or found
    if len(preferred) != 1 or len(names) > MOST:
        raise invalid("the archive needs exactly one YAML or JSON file, or one called pipeline.yaml")
    return preferred[0]
