"""The cost of kfp: a step that reports its start, and many that do nothing."""

from kfp import dsl


@dsl.component
def began() -> float:
    import time

    return time.time()


@dsl.container_component
def nothing():
    return dsl.ContainerSpec(image="site.invalid/trainyard/base:0.4.0", command=["true"])


@dsl.pipeline
def first() -> float:
    return began().output


@dsl.pipeline
def many(items: list):
    with dsl.ParallelFor(items):
        nothing()
