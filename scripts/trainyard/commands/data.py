"""Commands under `trainyard data`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainyard import structured
from trainyard.commands.common import connected, output
from trainyard.errors import TrainyardError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.contract import Contract
    from trainyard.data import Place, Set
    from trainyard.kube import Kube
    from trainyard.training.transfer.folder import FolderFiles

EXAMPLE = "shared/mnist"  # what the example pipelines and jobs read
FORMATS = ("table", "json", "yaml", "name")


@click.group()
def data() -> None:
    """Upload, list and delete data sets.

    \b
    NAME             access          location
    digits           your team       s3://datasets/TEAM/digits
    shared/mnist     all teams read  s3://datasets/shared/mnist; uploaded by the platform engineer
    raw-data/scans   all teams read  s3://raw-data/scans
    workspace/notes  your team       claim workspace, folder notes
    """


@data.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name", default="")
@output("name", "json", "yaml")
@options
def put(folder: Path, name: str, form: str, access: Access) -> None:
    """Upload a folder or file as a data set. NAME defaults to the folder's name. Files that are already stored are not
    sent again, so an interrupted upload resumes; stored files that the folder lacks are kept. Prints the URI of the
    data set for pipelines and scripts.
    """
    from trainyard.data import places
    from trainyard.training.transfer import folder as transfers

    name = name or places.named_after(folder)
    found = transfers.scan(folder)
    kube, known = connected(access)
    _put(kube, known, found, places.place(known, kube.namespace, name), form)


@data.command()
@options
def example(access: Access) -> None:
    """Upload MNIST for the examples. The target is s3://datasets/shared/mnist, for the platform engineer. The source is
    mnist/ in the folder $TRAINYARD_DATA, else Debian's package of Fashion-MNIST, which has the same format.
    """
    from trainyard.data import places
    from trainyard.pipelines.local import dataset
    from trainyard.training.transfer import folder

    kube, known = connected(access)
    try:
        found = dataset.find()
    except TrainyardError as error:
        hint = f"put the four MNIST files into a folder, and run `trainyard data put FOLDER {EXAMPLE}`"
        raise TrainyardError(f"no copy of MNIST found on this machine ({error.what})", hint=hint) from None
    click.echo(f"{EXAMPLE} is {found.name}", err=True)
    _put(kube, known, folder.scan(found.folder), places.place(known, kube.namespace, EXAMPLE), "name")


@data.command("list")
@click.argument("name", default="")
@output(*FORMATS)
@options
def list_(name: str, form: str, access: Access) -> None:
    """List data sets, or the files of one. Without NAME, lists all data sets that the team may read, except those in
    the workspace. `list shared`, `list raw-data` and `list workspace` list only the data sets there.
    """
    from trainyard.data import places, sets

    kube, known = connected(access)
    if name and not places.is_kind(known, name):
        where = places.place(known, kube.namespace, name)
        with sets.opened(kube, known, [where]) as store:
            found, head = sets.files(store, where), "FILE"
    else:
        roots, head = places.roots(known, kube.namespace, name), "NAME"
        with sets.opened(kube, known, roots) as store:
            found = [one for root in roots for one in sets.listed(store, root)]
    if form in ("json", "yaml"):
        click.echo(structured.text([one.data() for one in found], form), nl=False)
    elif form == "name":
        click.echo("\n".join(one.place.name for one in found))
    elif found:
        click.echo(_table(found, head))
    else:
        hint = "upload one with `trainyard data put FOLDER`"
        click.echo(f"no data sets{f' in {name}' if name else ''} for {kube.namespace}; {hint}", err=True)


@data.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@options
def delete(names: tuple[str, ...], access: Access) -> None:
    """Delete data sets. The bucket keeps noncurrent versions for its configured time."""
    from trainyard.data import places, sets
    from trainyard.training.transfer import folder

    kube, known = connected(access)
    doomed = [places.place(known, kube.namespace, name) for name in names]
    for where in doomed:
        with sets.opened(kube, known, [where], write=True) as store:
            count = folder.remove(store, where.at)
        if not count:
            raise sets.missing(where)
        click.echo(f"data set {where.name} deleted: {_files(count)}")


def _put(kube: Kube, known: Contract, found: FolderFiles, where: Place, form: str) -> None:
    from trainyard.data import sets
    from trainyard.training.transfer import folder

    for name in found.left_out:
        click.echo(f"skipped: {name} is not a file", err=True)
    for name in found.outside:
        click.echo(f"sent: {name} is a link to a file outside the folder", err=True)
    with _bar(found.size, "reading") as progress:
        files = folder.digest(found, progress)
    with sets.opened(kube, known, [where], write=True) as store:
        due = folder.lacking(store, where.at, files)
        size = sum(one.size for one in due)
        try:
            if due:
                with _bar(size, "sending") as progress:
                    folder.send(store, where.at, due, progress)
        except KeyboardInterrupt:
            click.echo("\nfully sent files are kept; run the same command again to resume", err=True)
            raise
    same = f", {len(files) - len(due)} already stored" if len(files) > len(due) else ""
    click.echo(f"{where.name}: {_files(len(due))} sent{same}", err=True)
    caches = (known.raw.get("storage") or {}).get("caches") or []
    if any(f"{one['bucket']}/{one['prefix'].strip('/')}" == where.at for one in caches):
        again = f"kubectl create job -n {known.namespace} --from=cronjob/trainyard-cache refresh-1"
        click.echo(f"to refresh the copy on the shared volume: {again}", err=True)
    if form == "name":
        click.echo(where.uri)
        return
    report = {"name": where.name, "uri": where.uri, "files": len(files), "bytes": found.size, "sent": len(due)}
    click.echo(structured.text(report, form), nl=False)


@contextmanager
def _bar(size: int, doing: str) -> Iterator[Callable[[int], None]]:
    """A bar of so many bytes on standard error; elsewhere than on a terminal one line."""
    with click.progressbar(length=max(1, size), label=f"{doing} {_size(size)}", file=sys.stderr) as bar:
        yield bar.update
        bar.update(not size)


def _table(found: list[Set], head: str) -> str:
    from trainyard.observe.listing import columns
    from trainyard.times import now, span

    at, rows = now(), [(head, "FILES", "SIZE", "CHANGED", "URI")]
    for one in found:
        age = f"{span((at - one.changed).total_seconds())} ago" if one.changed else ""
        rows.append((one.place.name, str(one.files), _size(one.size), age, one.place.uri))
    return columns(rows)


def _files(count: int) -> str:
    return f"{count} {'file' if count == 1 else 'files'}"


def _size(size: float) -> str:
    """Bytes as people say them: 512 B, 29.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
