"""Four consecutive steps that do almost nothing, to measure the cost of a step."""

from kfp import dsl

BASE = "site.invalid/trainyard/base:0.4.0"


@dsl.container_component
def pass_on(before: str, after: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image=BASE, command=["bash", "-euc", 'mkdir -p "$(dirname "$1")"; printf "%s." "$0" > "$1"', before, after]
    )


@dsl.pipeline(name="line")
def line(salt: str = "none"):
    first = pass_on(before=salt)
    second = pass_on(before=first.outputs["after"])
    third = pass_on(before=second.outputs["after"])
    pass_on(before=third.outputs["after"])
