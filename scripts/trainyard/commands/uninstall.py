"""`trainyard uninstall`: removes a release, and says what stays."""

import click

from trainyard.chart.helm import NAMESPACE, RELEASE
from trainyard.chart.release import inventory, removal
from trainyard.chart.release.installed import Installed
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube.kubectl import Kubectl


@click.command()
@click.option("--release", default=RELEASE, show_default=True, help="Name of the release.")
@click.option("-n", "--namespace", default=NAMESPACE, show_default=True, help="Namespace of the release.")
@click.option("--purge", is_flag=True, help="Also remove data, teams' namespaces, volumes, Secrets and CRDs.")
@click.option("--yes", is_flag=True, help="Don't ask for the release's name before a purge.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed and what would be kept.")
@click.option("--no-hooks", is_flag=True, help="Skip the hook that ends pods that would hang; see docs/upgrades.md.")
def uninstall(release: str, namespace: str, purge: bool, yes: bool, dry_run: bool, no_hooks: bool) -> None:
    """Remove a release from the cluster in $KUBECONFIG. Data is kept unless --purge is given."""
    installed = Installed(Kubectl(), release, namespace)
    there = removal.exists(installed)
    if not there and not purge:
        raise UsageError(
            f"no release {release} in namespace {namespace}", hint="list installed releases with `helm list -A`"
        )
    found = inventory.remains(installed)
    what = f"release {release} in {namespace}" if there else f"remains of release {release}"
    click.echo(f"{'would remove' if dry_run else 'removing'} {what}")
    click.echo("also removed:" if purge else "kept:")
    for line in found.lines() or ["nothing"]:
        click.echo(f"  {line}")
    if dry_run:
        return
    if (
        purge
        and not yes
        and click.prompt("All of this will be lost. Type the release's name to continue", default="") != release
    ):
        raise TrainyardError(
            "nothing was removed: the name does not match the release", hint=f"write {release}, or use --yes"
        )
    if purge:
        removal.purge(installed, click.echo, hooks=not no_hooks)
        click.echo(f"the namespace {namespace} is kept; to delete it: kubectl delete namespace {namespace}")
    else:
        removal.uninstall(installed, click.echo, hooks=not no_hooks)
        click.echo(f"to also remove what was kept: trainyard uninstall --release {release} -n {namespace} --purge")
