"""Builds binaries and images in parallel with other work: a graph, processed by one compiler and two image builders.

The base of all images is a node of the graph like any other, made by its own thread.

A cluster starts as soon as its own images are in the registry; the platform's follow while it comes up, the trainers'
while the platform is installed. A check that needs an image waits for it by name.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from trainyard.errors import TrainyardError
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry
from trainyard_dev.images.build import build, local_ref, tools_of
from trainyard_dev.images.source import Source
from trainyard_dev.tools.build import build as build_tools
from trainyard_dev.tools.build import is_built
from trainyard_dev.versions import Image, ToolSet, load

STAGES = ("cluster", "install", "check")  # images are made in this order
BASE = "the base"  # the node of the graph that every image needs
BUILDERS = 2  # at a time; they mostly wait for downloads and disks, the compiler uses the rest


class Supply:
    """Everything that a run needs and the cache lacks, in the order in which the run will need it.

    Args:
        names: images to make, in addition to those of the stage `cluster`; None: all except those on demand.
    """

    def __init__(self, engine: Engine, source: Source, names: Iterable[str] | None = None) -> None:
        self.engine, self.source, self.base = engine, source, source.base_ref
        chosen = set(names) if names is not None else {i.name for i in load().images.values() if not i.demand}
        images = [i for i in load().images.values() if i.stage == STAGES[0] or i.name in chosen]
        self.images = sorted(filter(self._made_here, images), key=lambda image: STAGES.index(image.stage))
        self.steps: list[tuple[str, float, float]] = []  # (what was made, start, end) in Unix seconds
        self._state = threading.Condition()
        self._waiting = [image for image in self.images if not self._is_there(image)]
        self._open = {image.name for image in self._waiting}  # images that are not made yet
        if self._open:
            self._open.add(BASE)
        self._taken: set[str] = set()
        self._built: list[Image] = []  # made, and not yet in the registry
        self._pushing: set[str] = set()
        self._address = ""
        self._error: BaseException | None = None
        self._stopped = False
        self._threads: list[threading.Thread] = []

    def missing(self, stage: str = "") -> list[str]:
        """Names of the images, of one stage or of all, that were missing at the beginning and are not yet made."""
        with self._state:
            return [i.name for i in self._waiting if i.name in self._open and stage in ("", i.stage)]

    def start(self) -> None:
        """Starts the work; returns at once."""
        jobs: list[Callable[[], None]] = [self._compile, self._make_base, *[self._build] * BUILDERS]
        self._threads = [threading.Thread(target=self._guarded, args=(job,), daemon=True) for job in jobs]
        for thread in self._threads:
            thread.start()

    def serve(self) -> str:
        """Starts the cluster's registry, whose image is made first; pending pushes follow. Returns its address."""
        self.wait(["registry"])
        image = lambda: self.source.registry_image(self.engine, self.base)  # noqa: E731
        address = registry.start(self.engine, registry.NETWORK, image)
        with self._state:
            self._address = address
            self._state.notify_all()
        return address

    def wait(self, names: Iterable[str]) -> None:
        """Returns when these images exist, as far as they are made here. Raises the error that prevented one."""
        wanted = {image.name for image in self.images} & set(names)
        with self._state:
            self._state.wait_for(lambda: self._error or self._stopped or not wanted & self._open)
            if left := wanted & self._open:
                raise self._error or TrainyardError(f"{', '.join(sorted(left))}: no longer built")

    def wait_stage(self, stage: str) -> None:
        """`wait` for every image of a stage."""
        self.wait(image.name for image in self.images if image.stage == stage)

    def close(self) -> None:
        """Starts nothing more, and returns when running work has ended."""
        with self._state:
            self._stopped = True
            self._state.notify_all()
        for thread in self._threads:
            thread.join()

    def _made_here(self, image: Image) -> bool:
        if image.local:
            return self.source.kind == "build" or image.name not in ("node", "registry")
        return image in self.source.served([image])

    def _is_there(self, image: Image) -> bool:
        if image.local:
            return self.engine.has_image(local_ref(image, self.base))
        return registry.is_pushed(image, self.base)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # the waiting check raises it
            with self._state:
                self._error = self._error or error
                self._state.notify_all()

    def _compile(self) -> None:
        """Builds every set of binaries, in the order of the images that need them; the cluster's own tools first."""
        for tool in needed_tools(self._waiting):
            if self._over():
                return
            if not is_built(tool):
                with self._step(f"{tool.name} {tool.version}"):
                    build_tools(tool)
                with self._state:
                    self._state.notify_all()

    def _make_base(self) -> None:
        """Makes the base of every image; nothing if no image is to be made."""
        if BASE in self._open:
            self.source.base(self.engine)
            self._made(BASE)

    def _build(self) -> None:
        """Repeatedly makes the first image whose binaries, base and parent exist."""
        while image := self._next():
            if image in self._built:
                with self._step(f"push {image.name}"):
                    registry.push(self.engine, image, self.base, self._address)
                self._built.remove(image)
                self._made(image.name)
            else:
                with self._step(f"image {image.name}"):
                    build(self.engine, image, self.base)
                if image.local:
                    self._made(image.name)
                else:
                    with self._state:
                        self._built.append(image)
                        self._state.notify_all()

    def _made(self, name: str) -> None:
        with self._state:
            self._open.discard(name)
            self._state.notify_all()

    def _next(self) -> Image | None:
        """A builder's next image: one to push once there is a registry, else one that can be made."""
        with self._state:
            while not self._over() and self._open:
                to_push = [image for image in self._built if self._address and image.name not in self._pushing]
                if to_push:
                    self._pushing.add(to_push[0].name)
                    return to_push[0]
                left = [image for image in self._waiting if image.name not in self._taken]
                if ready := next((image for image in left if self._can_be_made(image)), None):
                    self._taken.add(ready.name)
                    return ready
                self._state.wait(1)
            return None

    def _can_be_made(self, image: Image) -> bool:
        return not {BASE, image.parent} & self._open and all(map(is_built, tools_of(image)))

    def _over(self) -> bool:
        return self._stopped or self._error is not None

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Times one step, and prints a line when it is done."""
        since, ending = time.time(), "FAILED"
        try:
            yield
            ending = "made"
        finally:
            end = time.time()
            self.steps.append((name, since, end))
            print(f"  {ending}  {name} … {end - since:.1f} s", flush=True)


def needed_tools(images: Sequence[Image]) -> list[ToolSet]:
    """The binaries needed for these images and for running a cluster of them, each set once, in the order of need."""
    known = load().tools
    order = [known["kind"]]
    for stage in STAGES:
        order += [tool for image in images if image.stage == stage for tool in tools_of(image)]
        if stage == STAGES[0]:
            order += [known["kubernetes"], known["helm"]]  # this machine itself runs both
    return list({tool.name: tool for tool in order}.values())
