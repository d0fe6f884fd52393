"""A run on this machine: the graph, the steps, and the first failed step's reason."""

import logging
import warnings
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.pipelines.ir.model import Pipeline
from trainyard.pipelines.local.folders import Folders
from trainyard.pipelines.local.graph import Graph
from trainyard.pipelines.local.task import Runner
from trainyard.pipelines.steps.processes import Processes


class PipelineError(TrainyardError):
    """A step failed."""


def run(pipeline: Pipeline, arguments: dict[str, Any], folders: Folders) -> dict[str, Any]:
    """Runs all steps; returns the pipeline's outputs. Raises PipelineError with the first failed step's reason."""
    processes = Processes()
    runner = Runner(pipeline, folders, processes)
    graph = Graph(pipeline, runner.run)
    logging.disable(logging.ERROR)  # kfp's own messages about each step
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = graph.run(arguments)
    finally:
        logging.disable(logging.NOTSET)
        processes.end()
    if graph.failed:
        name, reason, log = runner.failed[-1] if len(runner.failed) == 1 else runner.failed[0]
        raise PipelineError(f"step {name} failed: {reason}", hint=f"its whole output is in {log}")
    return outputs
