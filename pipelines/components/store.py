"""The team's keys to the object store, for the steps that need them."""

import functools
from collections.abc import Callable

from kfp import dsl, kubernetes
from kfp.dsl.base_component import BaseComponent

SECRET = "trainyard-s3"  # the platform makes it in each team's namespace; it opens the team's folders only
KEYS = {"endpoint": "S3_ENDPOINT", "access-key": "S3_ACCESS_KEY", "secret-key": "S3_SECRET_KEY"}
SOMETIMES = {"region": "S3_REGION", "ca.crt": "S3_CA"}


def with_store(task: dsl.PipelineTask) -> dsl.PipelineTask:
    """Gives a task S3_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY and, where the store has them, S3_REGION and S3_CA."""
    kubernetes.use_secret_as_env(task, secret_name=SECRET, secret_key_to_env=KEYS)
    kubernetes.use_secret_as_env(task, secret_name=SECRET, secret_key_to_env=SOMETIMES, optional=True)
    return task


def stored(component: BaseComponent) -> Callable[..., dsl.PipelineTask]:
    """A component whose tasks always have the keys; `.component` is the original one."""

    @functools.wraps(component.python_func)
    def task(**arguments: object) -> dsl.PipelineTask:
        return with_store(component(**arguments))

    vars(task)["component"] = component
    return task
