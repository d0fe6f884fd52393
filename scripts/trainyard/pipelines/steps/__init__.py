"""The training components of pipelines, inside their step: start a job once, follow it, fetch its results.

Copied into the image `pipeline`; needs the standard library, and an S3 client for the results.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from trainyard.errors import TrainyardError


@contextmanager
def _errors_end_here() -> Iterator[None]:
    """An error ends the process with `error: …` and `hint: …`, after earlier output."""
    try:
        yield
    except TrainyardError as error:
        sys.stdout.flush()
        sys.exit("\n".join(error.lines()))


def train(framework: str, given: Mapping[str, Any]) -> str:
    """Runs a training component; returns its job's name. An error ends the process.

    Args:
        framework: pytorch, tensorflow, mpi or volcano.
        given: all arguments of the component, with `model` and `metrics` to fill and `data` or None.
    """
    from trainyard.pipelines.steps import component

    with _errors_end_here():
        return component.run(framework, given, os.environ)


class Made(NamedTuple):
    """The values that `create_object` returns."""

    name: str
    value: str


def create_object(given: Mapping[str, Any]) -> Made:
    """Makes an object in Kubernetes and waits for it. An error ends the process.

    Args:
        given: all arguments of the component.
    """
    from trainyard.pipelines.steps import component

    with _errors_end_here():
        return Made(*component.create(given, os.environ))


class Registered(NamedTuple):
    """The values that `register_model` returns."""

    uri: str
    version: str


def register_model(given: Mapping[str, Any]) -> Registered:
    """Registers a folder as a version of a model. An error ends the process.

    Args:
        given: all arguments of the component, with `registered` to fill.
    """
    from trainyard.pipelines.steps import models

    with _errors_end_here():
        return Registered(*models.register(given, os.environ))


class Judged(NamedTuple):
    """The values that `gate_model` returns."""

    passed: bool
    served: str


def gate_model(given: Mapping[str, Any]) -> Judged:
    """Compares a version with the one in service. An error ends the process.

    Args:
        given: all arguments of the component.
    """
    from trainyard.pipelines.steps import models

    with _errors_end_here():
        return Judged(*models.gate(given, os.environ))


def serve_model(given: Mapping[str, Any]) -> str:
    """Brings a version into service and waits for it; returns the version in service then. An error ends the process.

    Args:
        given: all arguments of the component.
    """
    from trainyard.pipelines.steps import models

    with _errors_end_here():
        return models.serve(given, os.environ)
