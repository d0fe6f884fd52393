"""Any object of Kubernetes as a step."""

from typing import NamedTuple

from kfp import dsl

from components.images import PIPELINE


@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def create_object(
    manifest: dict,
    success_condition: str = "",
    failure_condition: str = "",
    timeout: str = "1d",
    output: str = "",
    settings: dict = {},
    keep: bool = False,
) -> NamedTuple("Made", [("name", str), ("value", str)]):
    """Makes an object in the team's namespace and waits for it, with the rights of the account for pipelines.

    Args:
        manifest: the object, such as yaml.safe_load of its file; without metadata.name it gets a name of this run.
        success_condition: when the step is done, as Argo writes it: "status.phase == Succeeded". Empty waits for the
            end of a training job, and for nothing else.
        failure_condition: when it has failed, such as "status.phase in (Failed, Error)".
        timeout: the longest it may take: 90m, 12h, 2d. What takes longer is deleted, and the step fails.
        output: path of a value of the object that is handed on as `value`, such as status.url.
        settings: what {name} in texts of the manifest stands for; put values of other steps here. A text that is
            {name:json} becomes the value itself: a number, true, a list.
        keep: the object stays when the run goes.

    Returns the object's `name`, and `value`.
    """
    from trainyard.pipelines import steps

    return steps.create_object(locals())
