"""Runs one step: inputs as kfp describes them, the component's command as a process, outputs read back."""

import json
import re
import shutil
import sys
import tempfile
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from kfp import dsl
from kfp.dsl import component_factory
from kfp.local import executor_input_utils, executor_output_utils, importer_handler, placeholder_utils, utils
from kfp.local.subprocess_task_handler import replace_python_executable
from kfp.pipeline_spec import pipeline_spec_pb2

from trainyard.errors import UsageError
from trainyard.pipelines.ir import installer
from trainyard.pipelines.ir.model import Component, Pipeline
from trainyard.pipelines.ir.proto import whole_numbers
from trainyard.pipelines.local import folders as places
from trainyard.pipelines.local import notes
from trainyard.pipelines.steps.processes import Ended, Processes, say
from trainyard.pipelines.translate.constants import WORKSPACE

NUMBER_INTEGER = 2  # kfp's ParameterTypeEnum
REMOTE = ("gs://", "minio://", "http://", "https://", "oci://", "hf://")


class Runner:
    """Runs steps. `failed` holds (step, reason, log) of the steps that failed."""

    def __init__(self, pipeline: Pipeline, folders: places.Folders, processes: Processes) -> None:
        self.failed: list[tuple[str, str, Path]] = []
        self._spec = json_format.ParseDict(pipeline.spec, pipeline_spec_pb2.PipelineSpec())
        self._pipeline, self._folders, self._processes = pipeline, folders, processes
        self._env = places.environment(folders)
        self._count, self._lock = 0, threading.Lock()
        workspace, now = folders.run / "workspace", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        workspace.mkdir()
        # Placeholders that kfp's own local runs don't support.
        self._more = dict.fromkeys((dsl.WORKSPACE_PATH_PLACEHOLDER, WORKSPACE), str(workspace)) | {
            dsl.PIPELINE_JOB_RESOURCE_NAME_PLACEHOLDER: folders.name,
            dsl.PIPELINE_JOB_CREATE_TIME_UTC_PLACEHOLDER: now,
            dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER: now,
        }

    def run(self, title: str, component: Component, values: dict[str, Any]) -> dict[str, Any] | None:
        """Runs one step in its own folder; returns its outputs, None if it failed."""
        with self._lock:
            self._count += 1
            folder = self._folders.run / f"{self._count:02d}-{re.sub(r'[^a-zA-Z0-9.-]+', '-', title)}"
        folder.mkdir()
        spec = self._spec.components[component.name]
        executor = utils.struct_to_executor_spec(self._spec.deployment_spec["executors"][component.executor_label])
        image = executor.container.image
        if image.startswith((notes.CREATE, notes.DELETE)):
            return {"name": "local"} if image.startswith(notes.CREATE) else {}
        if executor.WhichOneof("spec") == "importer":
            return self._import(title, spec, executor, values)
        inputs = executor_input_utils.construct_executor_input(
            component_spec=spec, arguments=values, task_root=str(folder), block_input_artifact=False
        )
        described = executor_input_utils.executor_input_to_dict(inputs, spec)
        _whole_numbers(described, spec)
        command = self._command(title, executor, described)
        own = {entry.name: entry.value for entry in executor.container.env}
        step = json.dumps({"task": title, "component": component.name, "pipeline": self._pipeline.name})
        say(title, "begins")
        began, log = time.monotonic(), folder / "log.txt"
        ended = self._start(command, title, folder, {**self._env, **own, "TRAINYARD_STEP": step}, log)
        if ended.code:
            say(title, f"FAILED after {time.monotonic() - began:.1f} s")
            with self._lock:
                self.failed.append((title, ended.reason, log))
            return None
        say(title, f"done in {time.monotonic() - began:.1f} s")
        outputs = executor_output_utils.get_outputs_for_task(executor_input=inputs, component_spec=spec)
        # Programs other than kfp's write nothing about their artifacts.
        for key, artifact in inputs.outputs.artifacts.items():
            if key not in outputs:
                outputs[key] = executor_output_utils.runtime_artifact_to_dsl_artifact(artifact.artifacts[0])
        return outputs

    def _command(self, title: str, executor: Any, described: dict[str, Any]) -> list[str]:
        """The component's command with its placeholders filled in. Raises UsageError for one that kfp can't replace."""
        try:
            return placeholder_utils.replace_placeholders(
                full_command=self._filled([*executor.container.command, *executor.container.args]),
                executor_input_dict=self._filled(described),
                pipeline_resource_name=self._folders.name,
                task_resource_name=title,
                pipeline_root=str(self._folders.run),
                unique_pipeline_id=self._folders.name,
            )
        except (IndexError, KeyError, ValueError) as error:
            what = f"a placeholder of step {title} can't be filled in on one machine ({type(error).__name__}: {error})"
            raise UsageError(what, hint="submit the pipeline instead") from None

    def _filled(self, data: Any) -> Any:
        text = json.dumps(data)
        for placeholder, value in self._more.items():
            text = text.replace(placeholder, value)
        return json.loads(text)

    def _import(self, title: str, spec: Any, executor: Any, values: dict[str, Any]) -> dict[str, Any]:
        """An importer's artifact; for a bucket, the file on this machine. Raises UsageError if it is missing."""
        constant = executor.importer.artifact_uri.constant.string_value
        uri = (
            str(values.get("uri", "")) if executor.importer.artifact_uri.WhichOneof("value") != "constant" else constant
        )
        if uri.startswith(REMOTE):
            raise UsageError(f"the importer's {uri} can't be fetched here", hint="import from s3:// or a path")
        if uri.startswith(places.S3):
            path = self._folders.of_uri(uri)
            if not path.exists():
                raise UsageError(f"the importer's {uri} is not on this machine", hint=f"put it at {path}")
            uri = str(path)
        executor.importer.artifact_uri.constant.string_value = uri
        outputs, _ = importer_handler.run_importer(
            pipeline_resource_name=self._folders.name,
            component_name=f"comp-{title}",
            component_spec=spec,
            executor_spec=executor,
            arguments=values,
            pipeline_root=str(self._folders.run),
            unique_pipeline_id=self._folders.name,
        )
        say(title, f"imported {uri}")
        return outputs

    def _start(self, command: list[str], title: str, folder: Path, env: dict[str, str], log: Path) -> Ended:
        site = self._folders.run / "site"
        command, wanted = _without_pip(command, site)
        env |= {"PIP_TARGET": str(site), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        env["PYTHONPATH"] += f":{site}"
        if wanted:
            say(title, f"installs {', '.join(wanted)} for this run only")
        if any(component_factory.EXECUTOR_MODULE in word for word in command):
            command = replace_python_executable(command, sys.executable)
        elif command and not shutil.which(command[0]):
            return Ended(127, [f"the program {command[0]} of its image is not on this machine"])
        # A kfp component writes its program into a new temporary folder and leaves it there.
        with tempfile.TemporaryDirectory(prefix="trainyard-step-", ignore_cleanup_errors=True) as scratch:
            return self._processes.run(command, name=title, folder=folder, env=env | {"TMPDIR": scratch}, log=log)


def _without_pip(command: list[str], site: Path) -> tuple[list[str], list[str]]:
    """A component's command without its installer, if all packages are installed; and the missing ones."""
    asked, own = installer.split(command)
    missing = [one for one in asked.packages if not _installed(one, site)] if asked else []
    return (command, missing) if missing else (own, [])


def _installed(requirement: str, site: Path) -> bool:
    """Whether `name` or `name==version` is installed here, or in the run's folder; other forms count as missing."""
    name, _, version = requirement.partition("==")
    found = metadata.distributions(name=name.split("[")[0].strip(), path=[*sys.path, str(site)])
    return any(version in ("", one.version) for one in found)


def _whole_numbers(described: dict[str, Any], component_spec: Any) -> None:
    """Convert whole numbers in lists, structs and f-strings back to integers: protobuf made fractions of them, which
    components refuse. A cluster passes them on as integers, too.
    """
    kinds = {key: one.parameter_type for key, one in component_spec.input_definitions.parameters.items()}
    values = described.get("inputs", {}).get("parameterValues", {})
    for key, value in values.items():
        if isinstance(value, (list, dict)) or key not in kinds or kinds[key] == NUMBER_INTEGER:
            values[key] = whole_numbers(value)
