"""Steps for a trained model: register it, compare it with the version in service, and replace that or not."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from kfp import dsl

from components.images import PIPELINE
from components.store import stored


def anew(component: Callable[..., dsl.PipelineTask]) -> Callable[..., dsl.PipelineTask]:
    """A component that is never cached: another version may be in service by now."""

    @functools.wraps(component)
    def task(**arguments: object) -> dsl.PipelineTask:
        return component(**arguments).set_caching_options(False)

    return task


@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def register_model(
    model: dsl.Input[dsl.Model], name: str, registered: dsl.Output[dsl.Model], card: dict = {}, metrics: dict = {}
) -> NamedTuple("Registered", [("uri", str), ("version", str)]):
    """Registers the files of a model as a version, whose name is made from the content.

    Args:
        name: the model's name: lower-case letters, digits and hyphens.
        card: fields that the files' own model.json lacks: framework, inputs, outputs, data, code; see
            charts/serving/README.md.
        metrics: numbers by which it is compared, besides those of the artifact and of metrics.json.

    Returns where it is, and its `version`.
    """
    from trainyard.pipelines import steps

    return steps.register_model(locals())


@anew
@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def gate_model(
    name: str,
    version: str,
    metric: str = "accuracy",
    gain: float = 0.0,
    minimum: float = -1e308,
    lower: bool = False,
    strict: bool = False,
) -> NamedTuple("Judged", [("passed", bool), ("served", str)]):
    """Compares a registered version with the one in service.

    Args:
        metric: the number of their cards to compare.
        gain: how much better it has to be; below 0: how much worse it may be.
        minimum: the value that it has to reach in any case.
        lower: less is better, as for a loss.
        strict: the run fails when it does not pass.

    Returns whether it `passed`, and the version that is `served`, "" for none.
    """
    from trainyard.pipelines import steps

    return steps.gate_model(locals())


@anew
@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def serve_model(name: str, version: str, timeout: str = "10m") -> str:
    """Replaces the version in service by a registered one, and waits until all its replicas answer.

    A version that does not get ready in time is rolled back, and the step fails. A member has to put the model into
    service once: trainyard serve NAME.

    Returns the version that is in service.
    """
    from trainyard.pipelines import steps

    return steps.serve_model(locals())
