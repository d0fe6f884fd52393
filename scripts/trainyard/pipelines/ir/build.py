"""Builds the typed model from the checked documents."""

import json
from typing import Any

from trainyard.errors import UsageError
from trainyard.pipelines.ir import model as m
from trainyard.yaml_lines import Document

_KINDS = {"container": "container", "importer": "importer", "resolver": "resolver", "customJob": "custom job"}
_OLD_TYPES = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE", "STRING": "STRING"}


class Builder:
    """Builds one pipeline; `prefix` is the path of its spec in `document`."""

    def __init__(self, file: str, text: str, document: Document, prefix: tuple[str, ...]) -> None:
        self.file, self.text, self._document, self._prefix = file, text, document, prefix
        self._platform_lines: list[tuple[Document, tuple[str, ...]]] = []

    def platform_at(self, document: Document, prefix: tuple[str, ...]) -> None:
        """Sets the platform's document and path, for line numbers."""
        self._platform_lines.append((document, prefix))

    def pipeline(self, spec: dict[str, Any], platform: dict[str, Any], arguments: dict[str, Any]) -> m.Pipeline:
        info = spec.get("pipelineInfo", {})
        name = info.get("name", "")
        if not name:
            raise UsageError("the pipeline has no name", where=self._where("pipelineInfo"))
        if "root" not in spec:
            raise UsageError("the pipeline has no root", where=self._where())
        kubernetes = platform.get("platforms", {}).get("kubernetes", {})
        settings = kubernetes.get("deploymentSpec", {}).get("executors", {})
        executors = {
            label: self._executor(label, one, settings.get(label, {}))
            for label, one in spec.get("deploymentSpec", {}).get("executors", {}).items()
        }
        components = {
            key: self._component(key, one, executors, ("components", key))
            for key, one in spec.get("components", {}).items()
        }
        return m.Pipeline(
            name=name,
            root=self._component(m.ROOT, spec["root"], executors, ("root",)),
            components=components,
            executors=executors,
            config=kubernetes.get("pipelineConfig", {}),
            spec=spec,
            platform=platform,
            file=self.file,
            text=self.text,
            display_name=info.get("displayName", ""),
            description=info.get("description", ""),
            sdk=spec.get("sdkVersion", ""),
            arguments=arguments,
        )

    def _line(self, *path: str | int) -> int:
        return self._document.line(*self._prefix, *path)

    def _where(self, *path: str | int) -> str:
        return f"{self.file}:{self._line(*path)}"

    def _component(
        self, name: str, one: dict[str, Any], executors: dict[str, m.Executor], at: tuple[str, ...]
    ) -> m.Component:
        label = one.get("executorLabel", "")
        return m.Component(
            name=name,
            inputs=self._interface(one.get("inputDefinitions", {}), (*at, "inputDefinitions")),
            outputs=self._interface(one.get("outputDefinitions", {}), (*at, "outputDefinitions")),
            dag=self._dag(one["dag"], (*at, "dag")) if "dag" in one else None,
            executor_label=label,
            executor=executors.get(label),
            passthroughs=tuple(one.get("taskConfigPassthroughs", ())),
            line=self._line(*at),
        )

    def _interface(self, one: dict[str, Any], at: tuple[str, ...]) -> m.Interface:
        parameters = {
            name: m.Parameter(
                name=name,
                type=p.get("parameterType") or _OLD_TYPES.get(p.get("type", ""), ""),
                default=p.get("defaultValue", m.MISSING),
                optional=p.get("isOptional", False),
                literals=tuple(p.get("literals", ())),
                line=self._line(*at, "parameters", name),
            )
            for name, p in one.get("parameters", {}).items()
        }
        artifacts = {
            name: m.Artifact(
                name=name,
                type=artifact_type(a.get("artifactType", {})),
                is_list=a.get("isArtifactList", False),
                optional=a.get("isOptional", False),
                metadata=a.get("metadata", {}),
                line=self._line(*at, "artifacts", name),
            )
            for name, a in one.get("artifacts", {}).items()
        }
        return m.Interface(parameters, artifacts)

    def _dag(self, one: dict[str, Any], at: tuple[str, ...]) -> m.Dag:
        tasks = {name: self._task(name, t, (*at, "tasks", name)) for name, t in one.get("tasks", {}).items()}
        outputs = one.get("outputs", {})
        parameters = {}
        for name, o in outputs.get("parameters", {}).items():
            line = self._line(*at, "outputs", "parameters", name)
            oneof = "valueFromOneof" in o
            selectors = (
                o.get("valueFromOneof", {}).get("parameterSelectors", [])
                if oneof
                else [o.get("valueFromParameter", {})]
            )
            places = tuple(
                m.FromTask(s.get("producerSubtask", ""), s.get("outputParameterKey", ""), line=line) for s in selectors
            )
            parameters[name] = m.Output(name, places, oneof, line)
        artifacts = {}
        for name, o in outputs.get("artifacts", {}).items():
            line = self._line(*at, "outputs", "artifacts", name)
            places = tuple(
                m.FromTask(s.get("producerSubtask", ""), s.get("outputArtifactKey", ""), line=line)
                for s in o.get("artifactSelectors", ())
            )
            artifacts[name] = m.Output(name, places, len(places) > 1, line)
        return m.Dag(tasks, parameters, artifacts)

    def _task(self, name: str, one: dict[str, Any], at: tuple[str, ...]) -> m.Task:
        inputs = one.get("inputs", {})
        policy = one.get("triggerPolicy", {})
        caching = one.get("cachingOptions", {})
        return m.Task(
            name=name,
            component=one.get("componentRef", {}).get("name", ""),
            parameters={
                key: self._parameter_source(s, (*at, "inputs", "parameters", key))
                for key, s in inputs.get("parameters", {}).items()
            },
            artifacts={
                key: self._artifact_source(s, (*at, "inputs", "artifacts", key))
                for key, s in inputs.get("artifacts", {}).items()
            },
            depends=tuple(one.get("dependentTasks", ())),
            condition=policy.get("condition", ""),
            strategy=policy.get("strategy", ""),
            cache=caching.get("enableCache", False),
            cache_key=caching.get("cacheKey", ""),
            loop=self._loop(one, at),
            retry=_retry(one.get("retryPolicy")),
            display_name=one.get("taskInfo", {}).get("name", ""),
            line=self._line(*at),
        )

    def _parameter_source(self, s: dict[str, Any], at: tuple[str, ...]) -> m.Source:
        line, selector = self._line(*at), s.get("parameterExpressionSelector", "")
        if "taskOutputParameter" in s:
            o = s["taskOutputParameter"]
            return m.FromTask(o.get("producerTask", ""), o.get("outputParameterKey", ""), selector, line)
        if "componentInputParameter" in s:
            return m.FromInput(s["componentInputParameter"], selector, line)
        if "taskFinalStatus" in s:
            return m.FinalStatus(s["taskFinalStatus"].get("producerTask", ""), line)
        value = s.get("runtimeValue", {})
        if "runtimeParameter" in value:
            return m.FromInput(value["runtimeParameter"], selector, line)
        if "constant" in value:
            return m.Constant(value["constant"], selector, line)
        if "constantValue" in value:
            return m.Constant(_old_value(value["constantValue"]), selector, line)
        raise UsageError(f"the argument {at[-1]} of the task {at[-4]} has no value", where=f"{self.file}:{line}")

    def _artifact_source(self, s: dict[str, Any], at: tuple[str, ...]) -> m.Source:
        line = self._line(*at)
        if "taskOutputArtifact" in s:
            o = s["taskOutputArtifact"]
            return m.FromTask(o.get("producerTask", ""), o.get("outputArtifactKey", ""), line=line)
        if "componentInputArtifact" in s:
            return m.FromInput(s["componentInputArtifact"], line=line)
        raise UsageError(f"the argument {at[-1]} of the task {at[-4]} has no source", where=f"{self.file}:{line}")

    def _loop(self, one: dict[str, Any], at: tuple[str, ...]) -> m.Loop | None:
        limit = one.get("iteratorPolicy", {}).get("parallelismLimit", 0)
        if "artifactIterator" in one:
            it = one["artifactIterator"]
            source = it.get("items", {}).get("inputArtifact", "")
            return m.Loop(it.get("itemInput", ""), input=source, artifacts=True, limit=limit)
        if "parameterIterator" not in one:
            return None
        it = one["parameterIterator"]
        items = it.get("items", {})
        if "raw" not in items:
            return m.Loop(it.get("itemInput", ""), input=items.get("inputParameter", ""), limit=limit)
        try:
            raw = json.loads(items["raw"])
        except ValueError:
            raw = None
        if not isinstance(raw, list):
            raise UsageError(
                f"the items of the loop {at[-1]} are not a JSON list",
                where=self._where(*at, "parameterIterator", "items"),
            )
        return m.Loop(it.get("itemInput", ""), raw=raw, limit=limit)

    def _executor(self, label: str, one: dict[str, Any], kubernetes: dict[str, Any]) -> m.Executor:
        at = ("deploymentSpec", "executors", label)
        kind = next((kind for key, kind in _KINDS.items() if key in one), "")
        if not kind:
            raise UsageError(f"the executor {label} has neither a container nor an importer", where=self._where(*at))
        container = one.get("container", {})
        lines = [
            document.line(*prefix, "platforms", "kubernetes", "deploymentSpec", "executors", label)
            for document, prefix in self._platform_lines
        ]
        return m.Executor(
            label=label,
            kind=kind,
            image=container.get("image", ""),
            command=tuple(container.get("command", ())),
            args=tuple(container.get("args", ())),
            env={e.get("name", ""): e.get("value", "") for e in container.get("env", ())},
            resources=container.get("resources", {}),
            kubernetes=kubernetes,
            raw=next(iter(one.values())),
            line=self._line(*at),
            kubernetes_line=max(lines, default=0),
        )


def artifact_type(schema: dict[str, Any]) -> str:
    """The title of an artifact's schema: system.Model for the built-in ones, the namespaced name for others."""
    if title := schema.get("schemaTitle"):
        return title
    for line in schema.get("instanceSchema", "").splitlines():
        if line.startswith("title:"):
            title = line.partition(":")[2].strip()
            return title.replace("kfp.", "system.", 1) if title.startswith("kfp.") else title
    return schema.get("schemaUri", "") or "system.Artifact"


def _old_value(value: dict[str, Any]) -> Any:
    """The value of an older compiler's Value message: {stringValue | intValue | doubleValue}."""
    if "intValue" in value:
        return int(value["intValue"])
    return value.get("doubleValue", value.get("stringValue", ""))


def _retry(policy: dict[str, Any] | None) -> m.Retry | None:
    if not policy:
        return None
    return m.Retry(
        count=policy.get("maxRetryCount", 0),
        backoff=_seconds(policy.get("backoffDuration")),
        factor=policy.get("backoffFactor", 0),
        longest=_seconds(policy.get("backoffMaxDuration")),
    )


def _seconds(text: str | None) -> float:
    """The seconds of a Duration, which protobuf writes as '30s' or '1.5s'."""
    return float(text[:-1]) if text else 0
