"""`trainyard runs tensorboard`: a run's event files in TensorBoard, for this machine's browser."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from trainyard.commands.common import connected, say
from trainyard.commands.run_names import complete
from trainyard.errors import UsageError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.kube import Kube

LONGEST = 24 * 3600


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete)
@click.option("--port", type=click.IntRange(0, 65535), default=6006, show_default=True, help="Local port; 0: any.")
@click.option("--for", "deadline", default="2h", show_default=True, help="Maximum lifetime of the pod.")
@options
def tensorboard(names: tuple[str, ...], port: int, deadline: str, access: Access) -> None:
    """Show runs' event files in TensorBoard, until Ctrl-C.

    A pod in the team's namespace reads the files from the object store as they arrive; this command forwards the pod's
    port, and deletes the pod at the end. Scripts must write event files below the results folder: $TRAINYARD_RESULTS,
    or {out} in a pipeline. Files of finished jobs are available as long as the store keeps them.
    """
    from trainyard.kinds import TeamConfig
    from trainyard.kinds.spec import seconds
    from trainyard.kube.forward import Forward
    from trainyard.training import tensorboard as board

    time_s = seconds(deadline)
    if time_s > LONGEST:
        raise UsageError(f"--for {deadline} exceeds one day", hint="use at most 1d, then run the command again")
    kube, known = connected(access)
    config = TeamConfig.of(known, kube.namespace)
    places = [f"{place}={name}" for name in names for place in _places(kube, name, known.pipelines.get("bucket", ""))]
    with board.running(kube, config, places, time_s) as pod, Forward(kube, pod, board.PORT, port, say) as forward:
        threading.Thread(target=forward.serve_forever, daemon=True).start()
        say(f"TensorBoard: http://127.0.0.1:{forward.port}/ until Ctrl-C, or for {deadline}")
        try:
            board.watch(kube, pod, say, threading.Event().wait)
        finally:
            forward.shutdown()


def _places(kube: Kube, text: str, bucket: str) -> list[str]:
    """Where a run's event files can lie: bucket and prefix."""
    from trainyard.commands.run_names import named_or_gone
    from trainyard.kinds.team_config import BUCKET
    from trainyard.training import facts

    this = named_or_gone(kube, text)
    if this.job is None and not this.gone:
        return [f"{bucket or BUCKET}/{kube.namespace}/pipelines/{this.name}"]
    return (facts.places(this.job) if this.job else []) or [facts.kept(kube.namespace, this.name)]
