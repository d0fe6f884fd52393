"""Moves images between registries and archives, bit by bit the same: digests stay what they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trainyard.errors import TrainyardError, UsageError
from trainyard_dev.images import layout
from trainyard_dev.images.remote import INDEXES, Manifest, Place, Registry
from trainyard_dev.progress import Progress

Fetch = Callable[[dict[str, Any]], Manifest]


@dataclass(frozen=True)
class Item:
    """An image to move: the reference that everyone knows it by, and where it can be read."""

    ref: str
    registry: Registry
    place: Place


def checked(prefix: str) -> str:
    """HOST[/PATH] without a slash at its end. Raises UsageError for one with a scheme, or without a host."""
    if "://" in prefix or not prefix.strip("/"):
        raise UsageError(f"`{prefix}` is no registry", hint="write it without a scheme: registry.example.org/mirror")
    return prefix.rstrip("/")


def under(prefix: str, ref: str) -> str:
    """A reference as global.imageRegistry turns it: the prefix in place of the host.

    >>> under("registry.example.org/mirror", "nvcr.io/nvidia/k8s-device-plugin:v0.19.3")
    'registry.example.org/mirror/nvidia/k8s-device-plugin:v0.17.4'
    """
    return f"{prefix.rstrip('/')}/{ref.partition('/')[2]}"


def target(prefix: str, ref: str, *, plain: bool) -> tuple[Registry, Place]:
    """Where an image goes: HOST[/PATH] in place of its own host, as global.imageRegistry turns references.

    Raises:
        UsageError: `prefix` is no registry.
    """
    place = Place.parse(under(checked(prefix), ref))
    return Registry(place.host, plain), place


def save(items: Sequence[Item], path: Path, *, platform: str = "") -> None:
    """Writes images as an OCI layout: into a folder, or, for a name that ends in .tar, into one file.

    Interrupted, it goes on where it was: blobs that are whole are not fetched again.
    """
    one_file = path.suffix == ".tar"
    folder = layout.Folder(path.with_name(f"{path.name}.parts") if one_file else path)
    refs: dict[str, Manifest] = {}
    progress = Progress(len(items), f"Images to {path}")
    for item in items:
        with progress.step(item.ref):
            root = _chosen(item, platform)
            for manifest in _graph(root, _fetcher(item)):
                for blob in manifest.blobs():
                    if not folder.has(blob["digest"], blob["size"]):
                        with item.registry.blob(item.place, blob["digest"]) as body:
                            folder.put(blob["digest"], body)
                folder.put_manifest(manifest)
            refs[item.ref] = root
    folder.close(refs)
    if one_file:
        layout.pack(folder.folder, path, print)


def load(path: Path, prefix: str, *, plain: bool = False) -> dict[str, str]:
    """Pushes all images of an archive or folder under HOST[/PATH]; returns each new reference with its digest."""
    source = layout.read(path)
    refs = source.refs()
    progress, done = Progress(len(refs), f"Images to {prefix}"), {}
    for ref, root in refs.items():
        registry, place = target(prefix, ref, plain=plain)
        with progress.step(str(place)):
            _push(registry, place, root, source.manifest, lambda blob: source.open(blob["digest"]))
            done[str(place)] = _checked(registry, place, root)
    return done


def mirror(items: Sequence[Item], prefix: str, *, plain: bool = False, platform: str = "") -> dict[str, str]:
    """Copies images from where they are to HOST[/PATH], through this machine's memory only."""
    progress, done = Progress(len(items), f"Images to {prefix}"), {}
    for item in items:
        registry, place = target(prefix, item.ref, plain=plain)
        with progress.step(str(place)):
            root = _chosen(item, platform)
            if registry.digest(place) != root.digest:
                home = item.place.repository if registry.base == item.registry.base else ""
                read = lambda blob, item=item: item.registry.blob(item.place, blob["digest"])  # noqa: E731
                _push(registry, place, root, _fetcher(item), read, home=home)
            done[str(place)] = _checked(registry, place, root)
    return done


def _push(
    registry: Registry,
    place: Place,
    root: Manifest,
    fetch: Fetch,
    read: Callable[[dict[str, Any]], IO[bytes]],
    *,
    home: str = "",
) -> None:
    """Blobs first, then manifests from the leaves to the root, which gets the tag.

    Args:
        home: a repository of the same registry that has the blobs.
    """
    for manifest in _graph(root, fetch):
        for blob in manifest.blobs():
            if registry.has_blob(place, blob["digest"]) or (home and registry.mount_blob(place, blob["digest"], home)):
                continue
            with read(blob) as body:
                registry.push_blob(place, blob["digest"], blob["size"], body)
        registry.push_manifest(place, manifest, "" if manifest is root else manifest.digest)


def _graph(root: Manifest, fetch: Fetch) -> Iterator[Manifest]:
    """The manifests below an index, then the index itself; or the one manifest."""
    for child in root.children():
        yield from _graph(fetch(child), fetch)
    yield root


def _fetcher(item: Item) -> Fetch:
    return lambda descriptor: item.registry.manifest(item.place, descriptor["digest"])


def _chosen(item: Item, platform: str) -> Manifest:
    """What the reference points to; with a platform, such as linux/amd64, only that one's manifest of an index."""
    root = item.registry.manifest(item.place)
    if not platform or root.media_type not in INDEXES:
        return root
    for child in root.children():
        found = child.get("platform", {})
        if f"{found.get('os')}/{found.get('architecture')}" == platform:
            return item.registry.manifest(item.place, child["digest"])
    raise TrainyardError(f"{item.ref} is not published for {platform}", hint="leave out --platform")


def _checked(registry: Registry, place: Place, root: Manifest) -> str:
    found = registry.digest(place)
    if found != root.digest:
        raise TrainyardError(f"{place} has the digest {found or 'of nothing'}, not {root.digest}", hint="try again")
    return found
