"""`trainyard values`: keeps a site's values files in step with the chart."""

from pathlib import Path

import click

from trainyard.chart import migrate as migration
from trainyard.commands import common


@click.group()
def values() -> None:
    """Keep values files in step with the chart."""


@values.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-i", "--write", is_flag=True, help="Write the files instead of only showing the differences.")
def migrate(files: tuple[Path, ...], write: bool) -> int:
    """Rename old values in values files. Shows the difference for each FILE; comments and order are kept. Exit code 0:
    nothing to do, or all files were written; 1: --write would change a file; 2: a file can't be read or must be changed
    by hand, and no file is written.
    """
    strings = [(file, common.read(str(file))) for file in files]
    changed = [(file, old, new) for file, old in strings if (new := migration.migrate(old, str(file))) != old]
    for file, old, new in changed:
        click.echo(common.difference(str(file), old, new, "migrated"), nl=False)
    if write:
        for file, _, new in changed:
            file.write_bytes(new.encode())
    what = "written" if write else "would change; to write them, add --write"
    click.echo(f"{len(changed)} of {len(files)} files {what}" if changed else "nothing to change", err=True)
    return 1 if changed and not write else 0
