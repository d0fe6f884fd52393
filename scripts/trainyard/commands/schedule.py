"""Commands under `trainyard schedule`."""

from pathlib import Path

import click

from trainyard import structured
from trainyard.commands.common import output, say
from trainyard.commands.submit import checked, wanted_run, what_runs
from trainyard.errors import UsageError
from trainyard.kube import Access, options

_name = click.argument("name", metavar="NAME")


@click.group()
def schedule() -> None:
    """Run pipelines on a schedule, in your team's queue."""


@schedule.command()
@_name
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option("--cron", multiple=True, metavar="'M H D M W'", help="Cron schedule of runs; may be repeated.")
@click.option("--every", default="", metavar="TIME", help="Interval between runs, counted from midnight: 30m, 90m, 1d.")
@click.option("--time-zone", default="UTC", show_default=True, metavar="ZONE", help="Time zone of --cron.")
@click.option("--start", default="", metavar="DATE", help="Start no run before this time.")
@click.option("--end", default="", metavar="DATE", help="Start no run from this time on.")
@click.option("--catch-up", default="", metavar="TIME", help="Start the last missed run if it is at most this late.")
@click.option("--max-running", type=click.IntRange(0), default=1, show_default=True, metavar="N",
              help="Maximum number of concurrent runs; 0 sets no limit.")  # fmt: skip
@click.option("--replace", is_flag=True, help="Replace a run in progress when the next one is due.")
@click.option("--paused", is_flag=True, help="Create the schedule paused; start it with `resume`.")
@click.option("--pipeline-name", default="", metavar="NAME", help="Pipeline to run, if the file contains several.")
@what_runs
@click.option("-o", "--output", "form", type=click.Choice(["yaml", "json", "name"]), help="Output format.")
@options
def create(
    name: str, pipeline: Path, cron: tuple[str, ...], every: str, time_zone: str, start: str, end: str, catch_up: str,
    max_running: int, replace: bool, paused: bool, pipeline_name: str, given: tuple[str, ...], queue: str,
    priority: str, experiment: str, no_cache: bool, dry_run: bool, contract_file: Path | None, form: str | None,
    access: Access,
) -> None:  # fmt: skip
    """Create a schedule, as an Argo CronWorkflow. The pipeline is compiled and checked now; later changes to the file
    do not affect scheduled runs.

    \b
    trainyard schedule create nightly train.py --cron '0 4 * * *' --time-zone Europe/Berlin
    trainyard schedule create often train.py --every 30m --end 2026-12-24
    """
    from trainyard.kinds.spec import seconds
    from trainyard.kube import caller
    from trainyard.pipelines import schedules
    from trainyard.pipelines.submit import send

    if bool(cron) == bool(every):
        raise UsageError("no schedule given", hint="pass either --cron or --every")
    every_s = seconds(every) if every else 0
    if every_s % 60:
        raise UsageError(f"--every {every} is not a whole number of minutes", hint="write 90m, 12h or 1d")
    if replace and max_running != 1:
        raise UsageError("--replace allows only one run at a time", hint="remove --max-running")
    wanted = wanted_run(pipeline, pipeline_name, given, queue, priority, experiment, no_cache)
    begin, stop = (schedules.moment(text, time_zone) if text else None for text in (start, end))
    if begin and stop and begin >= stop:
        raise UsageError("--end is not after --start")
    late_s = seconds(catch_up) if catch_up else 0
    times = schedules.Times(cron, every_s, time_zone, begin, stop, late_s, max_running, replace)
    kube, prepared = checked(wanted, access, contract_file, dry_run)
    if kube and not dry_run:
        caller.sign(kube, prepared.workflow)
    made = schedules.cron_workflow(name, prepared.workflow, times, paused=paused)
    if kube and not dry_run:
        made = send.put(kube, made, "schedule", f"delete the schedule with `trainyard schedule delete {name}`")
        if max_running > 1:
            schedules.keep_limit(kube, made, max_running)
        say(f"schedule {name} created in {kube.namespace}{', paused' * paused}")
    if dry_run or form:
        click.echo(f"{name}\n" if form == "name" else structured.text(made, form or "yaml"), nl=False)


@schedule.command("list")
@output("table", "json", "yaml", "name")
@options
def list_(form: str, access: Access) -> None:
    """List schedules, and why runs were rejected."""
    from trainyard.observe.listing import columns
    from trainyard.pipelines import schedules
    from trainyard.times import now

    kube = access.connect()
    found = schedules.listed(kube)
    if form in ("json", "yaml"):
        click.echo(structured.text(found, form), nl=False)
    elif form == "name":
        click.echo("\n".join(one["metadata"]["name"] for one in found))
    elif found:
        head = ["NAME", "SCHEDULE", "ZONE", "STATE", "LAST", "RUNNING", "SUCCEEDED", "FAILED", "BY"]
        click.echo(columns([head, *(schedules.row(one, now()) for one in found)]))
        for one in found:
            if why := schedules.refusal(one):
                say(f"{one['metadata']['name']}: {why}")
    else:
        say(f"no schedules in {kube.namespace}")


@schedule.command()
@_name
@options
def pause(name: str, access: Access) -> None:
    """Pause a schedule; a run in progress continues."""
    _suspend(access, name, True)


@schedule.command()
@_name
@options
def resume(name: str, access: Access) -> None:
    """Resume a paused schedule."""
    _suspend(access, name, False)


@schedule.command()
@_name
@options
def delete(name: str, access: Access) -> None:
    """Delete a schedule and its runs. The store keeps the output of the runs."""
    from trainyard.pipelines import schedules

    kube = access.connect()
    if not kube.delete(kube.path(schedules.VERSION, schedules.RESOURCE, name)):
        raise schedules.missing(kube, name)
    say(f"schedule {name} deleted")


def _suspend(access: Access, name: str, on: bool) -> None:
    from trainyard.pipelines import schedules

    schedules.suspend(access.connect(), name, on)
    say(f"schedule {name} {'paused' if on else 'resumed'}")
