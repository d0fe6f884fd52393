"""A step that replaces the version in service by a registered one, without a gate before it."""

import sys
from pathlib import Path

from kfp import dsl

sys.path.insert(0, str(Path(__file__).parents[5] / "pipelines"))
from components import serve_model


@dsl.pipeline(name="put", description="Serves a version, whatever it is")
def put(version: str, name: str = "digits", timeout: str = "60s") -> str:
    return serve_model(name=name, version=version, timeout=timeout).output
