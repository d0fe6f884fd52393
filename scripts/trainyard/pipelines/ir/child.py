"""Run as a separate script: imports one Python file or package and compiles a pipeline of it with kfp.

    child.py PATH NAME OUT REPORT

NAME may be empty. On an error in the author's file it writes REPORT: {"what", "line", "hint"}. Imports nothing of
trainyard, so that the author's imports never find it.
"""

import importlib
import importlib.util
import json
import os
import sys
import traceback
from types import ModuleType
from typing import Any


def main(path: str, name: str, out: str, report: str) -> int:
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != os.path.dirname(__file__)]
    sys.argv = [path]
    try:
        spare_client()
        module = load(path)
        chosen = choose(module, name)
        from kfp import compiler

        compiler.Compiler().compile(pipeline_func=chosen, package_path=out)
    except AuthorError as error:
        write(report, str(error), 0, error.hint)
        return 1
    except SyntaxError as error:
        line = error.lineno if error.filename and same(error.filename, path) else 0
        write(report, f"invalid Python: {error.msg}", line or 0)
        return 1
    except ModuleNotFoundError as error:
        hint = COMPONENTS if error.name == "components" else MODULE
        write(report, f"the module {error.name} is not installed", line_of(error, path), hint)
        return 1
    except BaseException as error:
        text = " ".join(str(error).split()) or "no message"
        write(report, f"{type(error).__name__}: {text}", line_of(error, path), hint_of(error, text))
        return 1
    return 0


def spare_client() -> None:
    """Imports kfp without its client, in a third of the time. Code that uses kfp.Client still gets it."""
    os.environ["_KFP_RUNTIME"] = "true"
    import kfp

    del os.environ["_KFP_RUNTIME"]
    from kfp import components, dsl  # noqa: F401

    def client(name: str) -> Any:
        if name != "Client":
            raise AttributeError(f"module 'kfp' has no attribute {name!r}")
        return importlib.import_module("kfp.client").Client

    kfp.__getattr__ = client


MODULE = "import it inside the component that needs it, or install it beside trainyard"
COMPONENTS = "copy the folder pipelines/components of trainyard's repository beside the file"


NO_FILE = 'the path counts from the folder you call trainyard in; take Path(__file__).with_name("component.yaml")'
NO_PATH = "an input with such a type is a parameter for kfp 2: take inputValue, or leave the type out for a file"
NO_COMPONENT = "not a component: the YAML has neither implementation (kfp's first form) nor pipelineInfo (of kfp 2)"
NO_SITE = "a component's URL is fetched on this machine; save it beside the file and take load_component_from_file"


def hint_of(error: BaseException, text: str) -> str:
    """A hint for errors that components from YAML cause."""
    if isinstance(error, FileNotFoundError):
        return NO_FILE
    if "cannot be paired with InputPathPlaceholder" in text:
        return NO_PATH
    if isinstance(error, KeyError) and "pipelineInfo" in text:
        return NO_COMPONENT
    return NO_SITE if type(error).__module__.startswith("requests.") else ""


class AuthorError(Exception):
    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def load(path: str) -> ModuleType:
    """Imports the file under its own name with its folder first on sys.path, as `python` would."""
    folder, file = os.path.split(path.rstrip("/"))
    if os.path.isdir(path):
        sys.path.insert(0, folder)
        if os.path.exists(os.path.join(path, "__init__.py")):
            return importlib.import_module(file)
        if not os.path.exists(os.path.join(path, "pipeline.py")):
            raise AuthorError("the folder is not a Python package and has no pipeline.py", "give the pipeline's file")
        folder, file, path = path, "pipeline.py", os.path.join(path, "pipeline.py")
    sys.path.insert(0, folder)
    name = os.path.splitext(file)[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def choose(module: ModuleType, name: str) -> Any:
    """The pipeline to compile: the one that is no other's task; a component if the file has nothing else."""
    from kfp.dsl import base_component, graph_component

    own, others, components = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for key, value in vars(module).items():
        if isinstance(value, graph_component.GraphComponent):
            mine = getattr(value.pipeline_func, "__module__", module.__name__) == module.__name__
            (own if mine else others)[key] = value
        elif isinstance(value, base_component.BaseComponent):
            components[key] = value
    pipelines = own or others
    if name:
        for key, value in {**components, **others, **own}.items():
            if name in (key, value.name, value.component_spec.name):
                return value
        known = ", ".join(sorted(pipelines or components)) or "none"
        raise AuthorError(f"no pipeline {name} in this file", f"it has: {known}")
    found = {id(value): (key, value) for key, value in (pipelines or components).items()}
    inner = {name for value in pipelines.values() for name in value.component_spec.implementation.graph.components}
    outer = {at: one for at, one in found.items() if f"comp-{one[1].name}" not in inner}
    found = outer if len(outer) == 1 else found
    if not found:
        raise AuthorError("no pipeline in this file", "decorate a function with @dsl.pipeline")
    if len(found) > 1:
        names = ", ".join(sorted(key for key, _ in found.values()))
        kind = "pipelines" if pipelines else "components and no pipeline"
        raise AuthorError(f"this file has several {kind}: {names}", "name one with --name (`submit`, `run`)")
    return next(iter(found.values()))[1]


def same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def line_of(error: BaseException, path: str) -> int:
    """The innermost line of the author's file in the error's traceback."""
    lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if same(f.filename, path)]
    return lines[-1] if lines else 0


def write(report: str, what: str, line: int, hint: str = "") -> None:
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"what": what, "line": line, "hint": hint}, file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
