"""Writes docs/components.md: every component of the release, with its images and far-reaching permissions."""

from collections.abc import Iterator

from trainyard import components
from trainyard.components import Component
from trainyard.paths import ROOT
from trainyard_dev.versions import installs, load

PAGE = "docs/components.md"
HEAD = """\
# Components

After this page you can name every part of the release, its version, its images and its far-reaching permissions.
`bin/trainyard versions sync` generates this page from the components' entries. See also [values](values.md),
[upgrades](upgrades.md) and how to [add a component](contributing/add-a-component.md).
"""


def render() -> str:
    """The whole page as text, the same for equal entries and pins."""
    versions = installs(ROOT, load().raw)
    lines = [HEAD, "| component | version | by default | description |", "|---|---|---|---|"]
    for one in components.dependencies():
        default = "off" if one.optional else "on"
        lines.append(f"| [`{one.name}`](values.md#{one.name}) | {versions[one.name]} | {default} | {one.about} |")
    for one in components.all_components():
        lines += [f"\n## {one.name}\n", *_section(one)]
    return "\n".join(lines).rstrip() + "\n"


def _section(one: Component) -> Iterator[str]:
    images = [load().raw["images"][name]["ref"] for name in one.images]
    if images:
        yield "Images: " + ", ".join(f"`{ref}`" for ref in images) + "."
    for who, rules in (("Everyone in a team may view", one.viewers), ("Members may change", one.members)):
        for rule in rules:
            things = ", ".join(f"`{name}.{rule['apiGroups'][0]}`" for name in rule["resources"])
            yield f"\n{who} {things} ({', '.join(rule['verbs'])})."
    if one.network:
        yield f"\nPods of teams can reach it at port {one.network['port']}."
    if one.metrics:
        ports = ", ".join(f"`{endpoint['name']}` at port {endpoint['port']}" for endpoint in one.metrics)
        yield f"\nWith `monitoring` on, Prometheus scrapes {ports}."
    if one.crds:
        yield "\nAn upgrade includes its CRDs: " + ", ".join(f"`{name}`" for name in one.crds.names) + "."
    if one.permissions:
        yield "\n| holder | far-reaching permissions | reason |\n|---|---|---|"
        for entry in one.permissions:
            yield f"| {entry['role']} | {', '.join(entry['grants'])} | {entry['reason']} |"
    if one.unrestricted:
        yield "\n| pod that Pod Security's `restricted` would reject | because of | why |\n|---|---|---|"
        for entry in one.unrestricted:
            yield f"| {entry['pod']} | {', '.join(entry['violations'])} | {entry['reason']} |"
    if not (one.images or one.permissions or one.unrestricted):
        yield "Its images and permissions are upstream's, except that packaging removes its permission to read Secrets."
