"""A site and helpers to judge broken files, shared by the tests of lint."""

import copy
import functools
import json
import random
from collections.abc import Iterator
from typing import Any

import sites
import yaml

from trainyard.pipelines import lint
from trainyard.policy.lint.finding import Finding

VALUES = """
gpuImages: cpu
nodePools:
  - {name: gpu, kind: gpu, labels: {trainyard.io/pool: gpu}, gpu: {resource: nvidia.com/gpu, count: 4},
     taint: {key: nvidia.com/gpu, value: present, effect: NoSchedule}, capacity: {cpu: 32, memory: 256Gi}}
  - {name: spot, kind: gpu, labels: {trainyard.io/pool: spot}, gpu: {resource: nvidia.com/gpu, count: 4},
     spot: true, taint: {key: trainyard.io/spot, value: present, effect: NoSchedule},
     capacity: {cpu: 32, memory: 256Gi}}
  - {name: cpu, kind: cpu, labels: {trainyard.io/pool: cpu}, capacity: {cpu: 16, memory: 64Gi}}
queues:
  - {name: training, weight: 1, parent: root, reclaimable: true}
  - {name: narrow, weight: 1, parent: root, capability: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 2}}
  - {name: above, weight: 1, parent: root}
  - {name: below, weight: 1, parent: above}
teams:
  - {name: vision, gid: 20001, queues: [training, narrow, above], maxGpusPerJob: 12,
     quota: {all: {pods: 50, gpus: 8}}}
storage:
  buckets:
    - {name: datasets, teams: own}
    - {name: runs, teams: own}
    - {name: backup, teams: none}
"""


@functools.cache
def site() -> lint.Site:
    """A site with one team, pools of known size, and queues of all kinds."""
    return lint.site(sites.of_values(yaml.safe_load(VALUES)), "vision")


def broken(text: str, old: str, new: str) -> str:
    """The text with one change; the old text must be there."""
    assert old in text, old
    return text.replace(old, new, 1) if old != text else new


def one(found: list[Finding], text: str, code: str, line: str) -> None:
    """Asserts that there is exactly one finding, of that code, at a line with that text."""
    reported = "\n".join(f"{one.where} {one.code} {one.field} {one.reason}" for one in found)
    assert [finding.code for finding in found] == [code], reported
    (finding,) = found
    assert finding.reason and finding.hint
    lines = text.splitlines()
    assert 1 <= finding.line <= max(1, len(lines))
    assert line in lines[finding.line - 1], f"{reported}: {lines[finding.line - 1]}"


def damaged(text: str, times: int = 60) -> Iterator[str]:
    """Random variants of the text: cut off, a line removed, two lines swapped or a value changed; always the same."""
    chance, lines = random.Random(42), text.splitlines(keepends=True)
    for _ in range(times):
        kind, made = chance.randrange(4), list(lines)
        row, other = chance.randrange(len(made)), chance.randrange(len(made))
        if kind == 0:
            made = [text[: chance.randrange(len(text))]]
        elif kind == 1:
            del made[row]
        elif kind == 2:
            made[row], made[other] = made[other], made[row]
        else:
            key, colon, _ = made[row].partition(":")
            made[row] = f"{key}{colon} {chance.choice(['', '7', 'yes', '[]', '{}', '[1, a]', '{a: {b: c}}'])}\n"
        yield "".join(made)


VALUES_AT_RANDOM = (None, 7, -1, 1e30, "x", "{{x}}", True, [], {}, [None], [{}], [1, "a"], {"a": None}, {"a": {"b": 1}})


def misshapen(text: str, times: int = 40) -> Iterator[str]:
    """Random variants of the data, with one or two parts replaced or removed; the same every time."""
    chance = random.Random(7)
    for _ in range(times):
        data = json.loads(json.dumps(yaml.safe_load(text)))
        for _ in range(chance.randrange(1, 3)):
            holder, key = chance.choice(list(_parts(data)))
            if chance.random() < 0.25 and isinstance(holder, dict):
                del holder[key]
            else:
                holder[key] = copy.deepcopy(chance.choice(VALUES_AT_RANDOM))
            if not data:
                break
        yield yaml.safe_dump(data)


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _parts(value[key])
