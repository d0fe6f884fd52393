"""Outputs of DAGs and loops: values, artifacts, and with each artifact its digest and, if needed, its place."""

from trainyard.pipelines.ir.model import Component, Output
from trainyard.pipelines.translate import names, values
from trainyard.pipelines.translate.context import Context, Object, carried


def of_dag(ctx: Context, component: Component, looped: bool) -> Object:
    """The outputs of a DAG. `looped`: each is a list of one, or an empty list if its task was skipped."""
    dag = component.dag
    assert dag is not None
    parameters: list[Object] = []
    artifacts: list[Object] = []
    for output in dag.parameters.values():
        _check(ctx, component, output, artifact=False)
        text = any(ctx.graph.is_text(ctx.graph.task(component, p.task), p.key) for p in output.places)
        parameters.append(_parameter(output.name, output, "", looped, json=not text))
    for output in dag.artifacts.values():
        _check(ctx, component, output, artifact=True)
        is_list = all(ctx.graph.is_list(component, place) for place in output.places)
        prefixes = ["sha-"]
        if is_list or looped or ctx.graph.located(component, output.name):
            prefixes.append("at-")
        for prefix in prefixes:
            parameters.append(_parameter(f"{prefix}{output.name}", output, prefix, looped, json=is_list))
        if not is_list and not looped:
            artifacts.append(_artifact(output))
    return carried(parameters, artifacts)


def of_loop(component: Component, each: str) -> Object:
    """A loop's outputs as lists: joins the lists of one that Argo returns; an empty one is from a skipped task."""
    wanted = list(component.outputs.parameters)
    for name in component.outputs.artifacts:
        wanted += [f"sha-{name}", f"at-{name}"]
    parameters = []
    for name in wanted:
        code = f'toJson(map(filter(fromJSON({values.maybe_output(each, name)} ?? "[]"), len(#) > 0), #[0]))'
        parameters.append({"name": name, "valueFrom": {"expression": code}})
    return {"parameters": parameters} if parameters else {}


def _parameter(name: str, output: Output, prefix: str, looped: bool, *, json: bool) -> Object:
    places = [values.output_parameter(names.task(p.task), prefix + p.key) for p in output.places]
    if len(places) == 1 and not looped:
        return {"name": name, "valueFrom": {"parameter": places[0].text}}
    code = _first(output, [place.code for place in places])
    if not looped:
        return {"name": name, "valueFrom": {"expression": code}}
    wrapped = f'"[" + ({code}) + "]"' if json else f"toJson([{code}])"
    return {"name": name, "valueFrom": {"expression": wrapped, "default": "[]"}}


def _artifact(output: Output) -> Object:
    if len(output.places) == 1:
        place = output.places[0]
        return {
            "name": output.name,
            "from": values.tag(f"tasks.{names.task(place.task)}.outputs.artifacts.{place.key}"),
        }
    codes = [
        f"tasks[{values.quoted(names.task(p.task))}].outputs.artifacts[{values.quoted(p.key)}]" for p in output.places
    ]
    return {"name": output.name, "fromExpression": _first(output, codes)}


def _first(output: Output, codes: list[str]) -> str:
    """The output of the branch that ran, of several exclusive ones."""
    code = codes[-1]
    for place, one in reversed(list(zip(output.places, codes, strict=True))[:-1]):
        code = f'tasks[{values.quoted(names.task(place.task))}].status == "Succeeded" ? {one} : {code}'
    return code


def _check(ctx: Context, component: Component, output: Output, *, artifact: bool) -> None:
    if not output.places:
        raise ctx.graph.dangling(f"a source for the output {output.name}", component)
    for place in output.places:
        inner = ctx.graph.component(ctx.graph.task(component, place.task))
        keys = inner.outputs.artifacts if artifact else inner.outputs.parameters
        if place.key not in keys:
            raise ctx.graph.dangling(f"the output {place.key} of {place.task}", component)
