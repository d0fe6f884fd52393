"""ParallelFor: a template around the loop's body that runs it for each item and collects its outputs."""

from collections.abc import Callable

from trainyard.pipelines.ir.model import Component, Task
from trainyard.pipelines.translate import context, outputs, step_parts, values
from trainyard.pipelines.translate.context import Context, Object

EACH = "each"
# Every item is a text. Not {{item}}: Argo would insert it with Go's escapes, not all of which JSON supports.
ITEM = "{{=item}}"


def template(ctx: Context, task: Task, component: Component, body: Callable[[], str]) -> str:
    """The loop of one task. Argo limits parallelism per template, so a loop has its own.

    Args:
        body: makes the template that runs for each item.
    """
    key = ["loop", component.name, task.loop, task.retry, sorted(task.parameters), sorted(task.artifacts)]
    name, _ = ctx.template(key, f"{component.name}-all", lambda: (_body(ctx, task, component, body()), None))
    return name


def _body(ctx: Context, task: Task, component: Component, body: str) -> Object:
    loop = task.loop
    assert loop is not None
    used = ctx.graph.used(component)
    taken = _inputs(task, component, used)
    each: Object = {"name": EACH, "template": body}
    arguments, carried = _handed_on(task, component, used)
    if loop.artifacts:
        at, sha = (f"inputs.parameters[{values.quoted(f'{kind}-{loop.input}')}]" for kind in ("at", "sha"))
        # In parentheses: a brace alone would begin a block of code.
        pairs = f'map(0..len(fromJSON({at}))-1, ({{"at": fromJSON({at})[#], "sha": fromJSON({sha})[#]}}))'
        each["withParam"] = "{{=" + f'len(fromJSON({at})) == 0 ? "[]" : toJson({pairs})' + "}}"
        bucket = values.quoted(f"s3://{ctx.settings.bucket}/")
        place = "{{=sprig.trimPrefix(" + bucket + ", item.at)}}"
        carried.append({"name": loop.item, "s3": {"key": place}, "archive": {"none": {}}})
        arguments.append({"name": f"sha-{loop.item}", "value": "{{item.sha}}"})
    else:
        each["withParam"] = _items(ctx, task)
        if loop.item in used:
            arguments.append({"name": loop.item, "value": ITEM})
    each["arguments"] = context.carried(arguments, carried)
    found: Object = {"inputs": taken} if taken else {}
    found["dag"] = {"tasks": [each]}
    if given := outputs.of_loop(component, EACH):
        found["outputs"] = given
    if loop.limit:
        found["parallelism"] = loop.limit
    if task.retry:
        found["retryStrategy"] = step_parts.retry_strategy(task.retry)
    return found


def _items(ctx: Context, task: Task) -> str:
    loop = task.loop
    assert loop is not None
    if loop.raw is None:
        given = values.input_parameter(loop.input).code
        return values.calculated(f'toJson(map(fromJSON({given}), type(#) == "string" ? # : toJson(#)))').text
    text = values.to_json(["null" if item is None else values.to_text(item) for item in loop.raw])
    if "\\u007b" in text or "{{" in text:
        what, hint = "loop items with {{, which Argo would replace", "give the items in another way"
        raise ctx.refuse_task(what, task, task.line, hint=hint)
    return text


def _inputs(task: Task, component: Component, used: set[str]) -> Object:
    """The loop's inputs: everything that its task gets; all others keep the body's defaults."""
    loop = task.loop
    assert loop is not None
    parameters: list[Object] = []
    artifacts: list[Object] = []
    for name in task.parameters:
        if name != loop.item and (name in used or name == loop.input):
            parameters.append({"name": name})
    for name in task.artifacts:
        declared = component.inputs.artifacts.get(name)
        if loop.artifacts and name == loop.input:
            parameters += [{"name": f"at-{name}"}, {"name": f"sha-{name}"}]
        elif declared is None or name not in used or name == loop.item:
            continue
        elif declared.is_list:
            parameters += [{"name": f"at-{name}"}, {"name": f"sha-{name}"}]
        else:
            parameters.append({"name": f"sha-{name}", "default": ""})
            artifacts.append({"name": name, **({"optional": True} if declared.optional else {})})
    found: Object = {}
    if parameters:
        found["parameters"] = parameters
    if artifacts:
        found["artifacts"] = artifacts
    return found


def _handed_on(task: Task, component: Component, used: set[str]) -> tuple[list[Object], list[Object]]:
    loop = task.loop
    assert loop is not None
    parameters: list[Object] = []
    artifacts: list[Object] = []
    for name in task.parameters:
        if name != loop.item and name in used:
            parameters.append({"name": name, "value": values.input_parameter(name).text})
    for name in task.artifacts:
        declared = component.inputs.artifacts.get(name)
        if declared is None or name not in used or name == loop.item:
            continue
        kinds = ("at", "sha") if declared.is_list else ("sha",)
        parameters += [{"name": f"{k}-{name}", "value": values.input_parameter(f"{k}-{name}").text} for k in kinds]
        if not declared.is_list:
            reference = values.tag(f"inputs.artifacts.{name}")
            artifacts.append({"name": name, "from": reference, **({"optional": True} if declared.optional else {})})
    return parameters, artifacts
