"""Images built in parallel with the work that needs them: in order of need, each once; failures reach waiting work."""

import threading
from pathlib import Path
from typing import Any

import pytest
from images_demo import FakeEngine

from trainyard.errors import TrainyardError
from trainyard_dev.images import supply
from trainyard_dev.images.source import Source
from trainyard_dev.versions import Image, load


class World:
    """A record of the images made, in order; a test may delay or fail one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self.built_tools: set[str] = set()
        self.fails, self.there = "", set[str]()
        self.gate = threading.Event()
        self.gate.set()
        self.held = ""
        monkeypatch.setattr(supply, "is_built", lambda tool: tool.name in self.built_tools)
        monkeypatch.setattr(supply, "build_tools", self._compile)
        monkeypatch.setattr(supply, "build", lambda engine, image, base: self._note(f"build {image.name}"))
        monkeypatch.setattr(supply, "local_ref", lambda image, base: image.name)
        monkeypatch.setattr(supply.registry, "is_pushed", lambda image, base: image.name in self.there)
        monkeypatch.setattr(supply.registry, "push", lambda e, image, base, address: self._note(f"push {image.name}"))
        monkeypatch.setattr(supply.registry, "start", lambda engine, network, image: "127.0.0.1:5")
        monkeypatch.setattr(Source, "base", lambda source, engine: self._note("base"))

    def _compile(self, tool: Any) -> None:
        self._note(f"compile {tool.name}")
        self.built_tools.add(tool.name)

    def _note(self, what: str) -> None:
        if what == self.held:
            assert self.gate.wait(10)
        if what == self.fails:
            raise TrainyardError(f"{what} failed")
        self.made.append(what)


class Engine(FakeEngine):
    def has_image(self, ref: str) -> bool:
        return False


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, cache: Path) -> World:
    return World(monkeypatch)


def start(names: set[str]) -> supply.Supply:
    made = supply.Supply(Engine(), Source("build", "asked for"), names)  # type: ignore[arg-type]
    made.start()
    return made


def test_everything_is_made_once_and_pushed_when_the_registry_is_there(world: World) -> None:
    made = start({"vc-scheduler", "trainer-torch"})
    made.serve()
    made.wait(["vc-scheduler", "trainer-torch"])
    made.close()
    assert len(world.made) == len(set(world.made))
    assert world.made.index("build registry") < world.made.index("push trainer-torch")
    assert {"push vc-scheduler", "push trainer-torch", "push kube-apiserver", "build node"} <= set(world.made)
    assert "build trainer-horovod" not in world.made and "push node" not in world.made


def test_the_cluster_does_not_wait_for_what_comes_later(world: World) -> None:
    world.held = "compile volcano"
    world.gate.clear()
    made = start({"vc-scheduler"})
    made.serve()
    made.wait_stage("cluster")
    assert made.missing("cluster") == [] and made.missing("install") == ["vc-scheduler"]
    world.gate.set()
    made.wait_stage("install")
    made.close()


def test_installs_go_on_while_the_compiler_works(world: World) -> None:
    world.held = "compile kind"
    world.gate.clear()
    made = start({"trainer-torch"})
    while "build trainer-torch" not in world.made:
        assert threading.Event().wait(0.01) is False
    world.gate.set()
    made.serve()
    made.wait(["trainer-torch"])
    made.close()


def test_the_compiler_does_not_wait_for_the_base_and_every_image_does(world: World) -> None:
    world.held = "base"
    world.gate.clear()
    made = start(set())
    while "compile helm" not in world.made:
        assert threading.Event().wait(0.01) is False
    assert not [what for what in world.made if what.startswith("build")]
    world.gate.set()
    made.serve()
    made.wait_stage("cluster")
    made.close()
    assert world.made.count("base") == 1


def test_an_image_on_another_comes_after_it(world: World) -> None:
    made = start({"trainer-torch", "trainer-horovod"})
    made.serve()
    made.wait(["trainer-horovod"])
    made.close()
    assert world.made.index("build trainer-torch") < world.made.index("build trainer-horovod")


@pytest.mark.parametrize("what", ["base", "compile kubernetes", "build node", "push pause"])
def test_a_failure_reaches_who_waits(world: World, what: str) -> None:
    world.fails = what
    made = start(set())
    with pytest.raises(TrainyardError, match=f"{what} failed"):
        made.serve()
        made.wait_stage("cluster")
    made.close()


def test_nothing_is_made_when_all_is_there(world: World) -> None:
    world.there = {image.name for image in load().images.values()}
    world.built_tools = set(load().tools)
    made = supply.Supply(FakeEngine(), Source("build", "x"), {"vc-scheduler"})  # type: ignore[arg-type]
    made.engine.has_image = lambda ref: True  # type: ignore[method-assign]
    made = supply.Supply(made.engine, Source("build", "x"), {"vc-scheduler"})
    made.start()
    made.serve()
    made.wait_stage("install")
    made.close()
    assert world.made == []


def test_where_images_are_pulled_only_ours_are_made() -> None:
    names = {image.name for image in supply.Supply(Engine(), Source("pull", "x")).images}  # type: ignore[arg-type]
    assert {"platform", "mount-nfs"} <= names and not {"node", "registry", "kube-apiserver", "vc-scheduler"} & names


def test_binaries_come_in_the_order_of_need() -> None:
    images: dict[str, Image] = load().images
    order = [tool.name for tool in supply.needed_tools([images["registry"], images["vc-scheduler"]])]
    assert order == ["kind", "registry", "kubernetes", "helm", "volcano"]
