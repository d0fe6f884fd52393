"""dsl.importer: a step with our own program that copies an object into the run, or keeps its URI as a reference."""

from dataclasses import replace
from typing import Any

from trainyard.kinds.pods import CLOSED
from trainyard.pipelines.ir.build import artifact_type
from trainyard.pipelines.ir.model import Artifact, Component, Executor, Interface, Parameter
from trainyard.pipelines.translate import constants, interfaces, names, step_parts, values
from trainyard.pipelines.translate.context import Context, Object, digest


def body(ctx: Context, component: Component, executor: Executor, *, cache: bool) -> Object:
    """The template of an importer component."""
    raw = executor.raw

    def given(name: str) -> values.Value:
        if name not in component.inputs.parameters:
            raise ctx.graph.dangling(f"the input {name}", component)
        return values.input_parameter(name)

    try:
        uri = _uri(raw.get("artifactUri", {}), component.name, given)
        metadata = constants.code(raw.get("metadata", {}), component.name, "", given)
    except constants.UnreadableError as error:
        raise ctx.refuse(f"{error} in an importer", component, hint="give the value in another way") from None
    typed = replace(component, outputs=Interface(artifacts=_typed(component, raw)))
    codes = {"uri": uri.code}
    if raw.get("metadata"):
        codes["metadata"] = f"toJson({metadata})"
    declared = replace(typed, inputs=Interface())
    container: Object = {
        "image": ctx.settings.contract.images["argoexec"],
        "imagePullPolicy": "IfNotPresent",
        "command": [step_parts.PROGRAM, "import"],
        "env": [*step_parts.environment(ctx, declared, codes, cache), *step_parts.store_keys()],
        "securityContext": dict(CLOSED),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [{"name": "kfp", "mountPath": "/kfp"}],
    }
    inputs = interfaces.inputs(component, ctx.graph.used(component))
    found: Object = {
        **({"inputs": inputs} if inputs else {}),
        "outputs": interfaces.outputs(ctx, typed),
        "container": container,
        "volumes": [{"name": "kfp", "emptyDir": {}}],
        "retryStrategy": step_parts.infrastructure(),
    }
    if cache and not raw.get("reimport"):
        listed = [one["name"] for one in inputs.get("parameters", ())]
        found["memoize"] = step_parts.memoize(ctx, component, ["import", digest(raw)], listed)
    return found


def for_input(artifact: Artifact) -> Component:
    """An importer for an artifact that is an input of the pipeline itself, given as a URI."""
    raw = {"artifactUri": {"runtimeParameter": "uri"}, "typeSchema": {"schemaTitle": artifact.type}}
    return Component(
        name=names.task(f"import-{artifact.name}"),
        inputs=Interface(parameters={"uri": Parameter("uri", "STRING")}),
        outputs=Interface(artifacts={artifact.name: artifact}),
        executor=Executor(label="", kind="importer", raw=raw),
    )


def _uri(spec: dict[str, Any], task: str, given: constants.Input) -> values.Value:
    if "runtimeParameter" in spec:
        return given(spec["runtimeParameter"])
    if "constantValue" in spec:
        return values.literal(str(spec["constantValue"].get("stringValue", "")))
    return constants.value(spec.get("constant", ""), task, "", given)


def _typed(component: Component, raw: dict[str, Any]) -> dict[str, Artifact]:
    """The importer's only output, with the type that the importer declares."""
    kind = artifact_type(raw["typeSchema"]) if raw.get("typeSchema") else ""
    outputs = component.outputs.artifacts
    return {name: replace(one, type=kind or one.type) for name, one in outputs.items()}
