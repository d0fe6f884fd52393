"""A component from YAML between two Python components."""

from pathlib import Path

from kfp import components, dsl

IMAGE = "site.invalid/trainyard/pipeline:0.4.0"
count = components.load_component_from_file(str(Path(__file__).with_name("component.yaml")))


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def say(text: str, made: dsl.Output[dsl.Artifact]):
    with open(made.path, "w") as file:
        file.write(text)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def tell(total: int, report: dsl.Input[dsl.Artifact]) -> str:
    with open(report.path) as file:
        return f"{total} {file.read()}"


@dsl.pipeline(name="counted")
def counted(salt: str, text: str = "a few longer words and longer ones") -> str:
    said = say(text=text)
    found = count(text=said.outputs["made"], ignore="longer")
    return tell(total=found.outputs["total"], report=found.outputs["report"]).output
