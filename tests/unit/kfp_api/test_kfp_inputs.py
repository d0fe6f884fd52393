"""What callers may send to the service behind kfp.Client: ids, lists, texts, files. Each of any content."""

import asyncio
import base64
import gzip
import io
import json
import tarfile
import urllib.parse
import zipfile
from typing import Any

import pytest

from kfp_api import experiments, ids, listing, recurring, uploads
from kfp_api.call import Call, text
from kfp_api.errors import RefusalError
from kfp_api.turns import Turns

RUNS = [{"run_id": f"vision.r{n}", "display_name": name, "created_at": f"2026-11-30T10:00:0{n}Z"}
        for n, name in enumerate(["a.b", "a,b!=c", "b%", "(a+)+$", ""])]  # fmt: skip
FIELDS = ("run_id", "display_name", "created_at")


def refused(call: Any, *words: str) -> None:
    with pytest.raises(RefusalError) as error:
        call()
    assert all(word in error.value.message for word in words), error.value.message
    assert error.value.http in (400, 404)


def of(operation: Any, key: str = "display_name", **value: Any) -> str:
    return json.dumps({"predicates": [{"operation": operation, "key": key, **value}]})


def shown(**query: str) -> list[str]:
    return [one["run_id"][-1] for one in listing.page(RUNS, query, FIELDS)[0]]


@pytest.mark.parametrize(
    "filter", ["[", "[]", "5", '{"predicates": "x"}', '{"predicates": [null]}', of("IN", stringValues={}),
               of("IN", stringValues={"values": "xyz"}), of("IN", stringValue="x"), of("LIKE", stringValue="x"),
               of("EQUALS", "__class__", stringValue="x"), of("EQUALS"), of("EQUALS", stringValue={}),
               of("LESS_THAN", "created_at", timestampValue="never"), "[" * 9000, "%7B",
               of("EQUALS", stringValue="x" * 10_000)],
)  # fmt: skip
def test_filters_that_are_none(filter: str) -> None:
    refused(lambda: shown(filter=filter))


def test_values_of_filters_are_texts_and_moments() -> None:
    assert shown(filter=of("EQUALS", stringValue="a.b")) == ["0"]
    assert shown(filter=of(9, stringValue="%")) == ["2"] and shown(filter=of(9, string_value="(a+)+$")) == ["3"]
    assert shown(filter=of("IN", stringValues={"values": ["a.b", "a,b!=c"]})) == ["0", "1"]
    for at in ("2026-11-30T10:00:03Z", "2026-11-30T12:00:03+02:00", "2026-11-30T10:00:03.123456789Z"):
        assert shown(filter=of("GREATER_THAN", "created_at", timestampValue=at)) == ["4"], at
    quoted = urllib.parse.quote(of("EQUALS", stringValue="b%"))  # as kfp's docstrings ask
    assert shown(filter=quoted) == ["2"]


LATE = base64.urlsafe_b64encode(b"[" * 5000).decode()
PAGES = [{"page_size": "x"}, {"page_size": "-1"}, {"page_token": "x"}, {"page_token": LATE}, {"sort_by": "spec desc"}]


@pytest.mark.parametrize("query", [*PAGES, {"sort_by": "created_at; drop"}])
def test_pages_that_are_none(query: dict[str, str]) -> None:
    refused(lambda: shown(**query), "invalid")


def test_pages_have_each_item_once() -> None:
    for order in ("", "created_at", "created_at desc", "display_name desc", "run_id"):
        seen, token = list[str](), ""
        while True:
            items, total, token = listing.page(RUNS, {"sort_by": order, "page_size": "2", "page_token": token}, FIELDS)
            seen += [one["run_id"] for one in items]
            if not token:
                break
        assert total == 5 and sorted(seen) == [one["run_id"] for one in RUNS], order
    token = listing.page(RUNS, {"page_size": "1"}, FIELDS)[2]
    refused(lambda: shown(page_token=token, sort_by="display_name"), "another filter or sort_by")


BAD = ["", ".", "..", "vision", "vision.", "vision..", ".x", "vision.x/../y", "vision.x?watch=true", "vision.x\n",
       "vision.%2e%2e", "VISION.x", "vision.-", "vision.x" * 99, "vision.\ud800", "vision.é"]  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_ids_that_are_none(bad: str) -> None:
    for read in (ids.read, lambda what, text: ids.version(text), lambda what, text: ids.read_artifact(text)):
        refused(lambda read=read: read("run", bad), "no ")
    refused(lambda: ids.read_artifact(base64.urlsafe_b64encode(b"[" * 9000).decode()), "no artifact")


def test_names_that_look_alike_have_labels_of_their_own() -> None:
    names = ["a b", "a-b", "a/b", "実験", "试验", "!!!", "x" * 64, "x" * 65, "Default", "default", "a,b", "a in (b)"]
    labels = {experiments.label_of(name) for name in names}
    assert len(labels) == len(names) and all(ids.LABEL.fullmatch(one) for one in labels)


def test_texts_and_numbers_of_bodies() -> None:
    for good in (
        "Übung 训练",
        "👩‍💻",
        "no-break\u00a0space",
        "全角\u3000",
        "é e\u0301",
        " padded ",
        "{{workflow.name}}",
    ):
        assert text({"a": good}, "a", 99) == good
    for bad, words in (
        ("a\0b", "control characters"),
        ("\ud800", "control characters"),
        (5, "not a text"),
        ("x" * 100, "at most 99"),
    ):
        refused(lambda bad=bad: text({"a": bad}, "a", 99), words)
    for body in (
        b"NaN",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b"[" * 100_000,
        b"\xff",
        b'{"a": ' + b"9" * 5000 + b"}",
        b"[]",
    ):
        refused(Call(None, None, body=body).json, "JSON")  # type: ignore[arg-type]
    for trigger in ({}, {"cron_schedule": {"cron": "5 * * * * *"}},
                    {"periodic_schedule": {"interval_second": float("nan")}},
                    {"cron_schedule": {"cron": "0 0 4 * * *", "start_time": "0001-01-01T00:00:00+14:00"}}):  # fmt: skip
        refused(lambda trigger=trigger: recurring._times({"trigger": trigger}))
    refused(
        lambda: recurring._times({"trigger": {"cron_schedule": {"cron": "@daily"}}, "max_concurrency": 11}),
        "between 1 and 10",
    )


def test_files_that_grow_or_lie() -> None:
    def packed(method: int, content: bytes = b"a: 1") -> bytes:
        with zipfile.ZipFile(made := io.BytesIO(), "w", method) as archive:
            archive.writestr("pipeline.yaml", content)
        return made.getvalue()

    link = tarfile.TarInfo("pipeline.yaml")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for data, words in {
        packed(zipfile.ZIP_BZIP2): "another way than deflate",
        packed(zipfile.ZIP_DEFLATED, bytes(9 << 20)): "larger than 1 MiB",
        packed(zipfile.ZIP_STORED)[:40]: "can't be unpacked", b"PK\3\4": "can't be unpacked", b"\xff": "UTF-8",
        gzip.compress(bytes(64 << 20)): "exactly one", gzip.compress(link.tobuf() + bytes(1024)): "exactly one",
        b"a: &a [x]\nb: *a": "aliases", b"x: " + b"[" * 5000: "line 1",
        b"a: " + b"1:" * 90_000 + b"1": "number", b"a: 0x" + b"f" * 9000: "number",
    }.items():  # fmt: skip
        refused(lambda data=data: uploads.content({"uploadfile": ("p", data)}), words)
    assert uploads.content({"uploadfile": ("p", packed(zipfile.ZIP_DEFLATED))}) == "a: 1"
    assert uploads.content({"uploadfile": ("p", b"\xef\xbb\xbfa: 1")}) == "a: 1"


def test_callers_have_turns() -> None:
    """One caller's heavy requests are answered one after the other; another's come in between."""
    turns, order = Turns(), list[str]()

    async def one(token: str) -> None:
        async with turns.of(token, heavy=True):
            order.append(token)
            await asyncio.sleep(0.01)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(token) for token in "aaaaabbbbb"))

    asyncio.run(all_of_them())
    assert order[:4].count("b") == 2, order
    turns.hold(60 << 20)
    with pytest.raises(RefusalError, match="too many large requests at once"):
        turns.hold(5 << 20)
    turns.hold(-(60 << 20))
    turns.hold(5 << 20)
