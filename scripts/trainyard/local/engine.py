"""Runs a compiled pipeline by kfp's local runner; steps themselves are run by `task.Runner` in place of kfp's."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format
from kfp import local
from kfp.local import importer_handler, logging_utils, pipeline_orchestrator, task_dispatcher
from kfp.local.orchestrator import task_executor
from kfp.pipeline_spec import pipeline_spec_pb2

from trainyard.errors import TrainyardError
from trainyard.ir.model import Pipeline
from trainyard.local.folders import Folders
from trainyard.local.processes import Processes
from trainyard.local.task import Runner


class PipelineError(TrainyardError):
    """A step failed."""


def run(pipeline: Pipeline, arguments: dict[str, Any], folders: Folders) -> dict[str, Any]:
    """Runs all steps; returns the pipeline's outputs. Raises PipelineError with the first failed step's reason."""
    spec = pipeline_spec_pb2.PipelineSpec()
    json_format.ParseDict(pipeline.spec, spec)
    processes = Processes()
    runner = Runner(pipeline, folders, processes)
    (folders.run / "workspace").mkdir()
    local.init(
        runner=local.SubprocessRunner(use_venv=False),
        pipeline_root=str(folders.run),
        workspace_root=str(folders.run / "workspace"),
    )
    try:
        with _adapted(runner):
            return pipeline_orchestrator.run_local_pipeline(spec, arguments)
    except RuntimeError as error:
        if runner.failed:
            name, reason, log = runner.failed[0]
            raise PipelineError(f"step {name} failed: {reason}", mend=f"its whole output is in {log}") from None
        raise PipelineError(f"the run ended early: {error}") from None
    except ValueError as error:
        raise PipelineError(f"the pipeline can't go on: {error}") from None
    finally:
        processes.end()


@contextlib.contextmanager
def _adapted(runner: Runner) -> Iterator[None]:
    """kfp's local runner with our own way to run one step, to name it and to import an artifact; and without its noise.

    kfp calls these by the module that holds them, so they are exchanged there and put back afterwards.
    """
    here = threading.local()
    execute = task_executor.execute_single_task

    def named(*, task_name: str, **rest: Any) -> Any:
        here.name = task_name
        return execute(task_name=task_name, **rest)

    def one(**given: Any) -> Any:
        return runner.run(getattr(here, "name", "step"), **given)

    places = [
        (task_executor, "execute_single_task", named),
        (task_dispatcher, "run_single_task_implementation", one),
        (importer_handler, "get_importer_uri", runner.importer_uri),
        (logging_utils, "print_horizontal_line", lambda: None),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in places]
    root = logging.getLogger()
    level = root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for module, name, value in places:
                setattr(module, name, value)
            logging.disable(logging.ERROR)
            yield
        finally:
            logging.disable(level)
            for module, name, value in before:
                setattr(module, name, value)
