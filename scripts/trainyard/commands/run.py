"""`trainyard run --local`: a pipeline on this machine."""

import time
from pathlib import Path
from typing import Any

import click

from trainyard.errors import UsageError


@click.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option("--local", "here", is_flag=True, help="Run on this machine; for the cluster, use `trainyard submit`.")
@click.option("--param", "-p", "params", multiple=True, metavar="NAME=VALUE", help="Argument of the pipeline.")
@click.option("--name", default=None, help="Pipeline to run, if the file contains several.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/local"),
    show_default=True,
    help="Folder for artifacts and logs; also replaces buckets.",
)
def run(pipeline: Path, here: bool, params: tuple[str, ...], name: str | None, out: Path) -> int:
    """Run a kfp pipeline on this machine, without a cluster. Steps are processes, buckets are folders, and training
    components start their ranks here. Features that need a cluster are listed before the run and ignored.
    """
    if not here:
        raise UsageError(
            "`run` only runs on this machine", hint="add --local, or use `trainyard submit` for the cluster"
        )
    from trainyard.pipelines.ir import compile as compiling
    from trainyard.pipelines.local import arguments, engine, folders, notes

    found = compiling.pipeline(pipeline, name)
    notes.refuse(found)
    values = arguments.parse(found, params)
    places = folders.make(out, found.name)
    print(f"{found.name}: run {places.name} on this machine", flush=True)
    if data := folders.offer_shared_data(places, found.text + str(values)):
        print(f"  {folders.S3}{folders.SHARED} is {data}", flush=True)
    for line in notes.not_honoured(found):
        print(f"  ignored locally: {line}", flush=True)
    began = time.monotonic()
    outputs = engine.run(found, values, places)
    print(f"succeeded in {time.monotonic() - began:.1f} s; artifacts and logs in {_short(places.run)}", flush=True)
    for key, value in outputs.items():
        print(f"  {key} = {_shown(value)}", flush=True)
    return 0


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(one) for one in value) + "]"
    if not hasattr(value, "uri"):
        return repr(value) if isinstance(value, str) else str(value)
    numbers = ", ".join(f"{key} {one}" for key, one in value.metadata.items() if isinstance(one, (int, float, str)))
    return f"{_short(Path(value.path))}" + (f" ({numbers})" if numbers else "")
