"""`trainyard gpus`: what is free, what is held, and how long one would wait."""

import click

from trainyard import structured
from trainyard.commands.common import output
from trainyard.kube import Access, options


@click.command()
@output("table", "json", "yaml")
@options
def gpus(form: str, access: Access) -> None:
    """Show free and held GPUs, and the wait in your queues. Each row is a pool and a GPU model. FREE GPUs can be used
    now; OUT GPUs are broken, or on nodes that are down or cordoned. FREE ON A NODE limits the size of one pod. Other
    teams appear only in sums, without names.
    """
    from trainyard.observe import gpus as observed

    kube = access.connect()
    seen = observed.read(kube)
    if form != "table":
        click.echo(structured.text(seen, form), nl=False)
        return
    for warning in observed.warnings(seen, kube.namespace):
        click.echo(f"warning: {warning}", err=True)
    click.echo("\n".join(observed.lines(seen)))
