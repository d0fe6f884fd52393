"""The packages in a component's `packages_to_install`: init containers install them, from wheels or an index."""

from packaging.requirements import InvalidRequirement, Requirement

from trainyard.kinds import packages, pods
from trainyard.pipelines.ir.installer import Installer
from trainyard.pipelines.ir.model import Component
from trainyard.pipelines.translate.context import Context, Object
from trainyard_agent.runs.requirements import RequirementError, Requirements, read

FILE = "packages_to_install"
MEMORY = "1280Mi"  # for pip: more, compared with its request, would make the pod one of the first to be evicted (p32)


def add(ctx: Context, component: Component, asked: Installer, found: Object) -> None:
    """Adds the installation of packages to a template; nothing if none are needed. Raises Unsupported."""
    if not asked.packages:
        return
    wanted = requirements(ctx, component, asked)
    container, settings = found["container"], ctx.settings
    image, site = container["image"], settings.contract.packages
    key = packages.key(settings.team.name, wanted.digest(image, str(site.get("index") or "")))
    words = ["fetch", f"--into={pods.ROOT}", *packages.fetched(FILE, key)]
    fetch = pods.helper(pods.FETCH, words, settings.contract.images["platform"])
    fetch["env"] += pods.package_sources(site, {FILE: wanted.text()})
    place = packages.kept(pods.ROOT, key)
    install = pods.installation(image, place, site, settings.contract.images["platform"], MEMORY)
    found.setdefault("initContainers", []).extend([fetch, *install])
    found["volumes"] += [{"name": "trainyard", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    found["metadata"] = {"labels": dict(packages.LABEL)}
    container["volumeMounts"].append({"name": "trainyard", "mountPath": pods.ROOT})
    container["env"].append(dict(packages.USER_BASE))


def requirements(ctx: Context, component: Component, asked: Installer) -> Requirements:
    """The packages as requirements. Raises Unsupported for one that doesn't come from an index."""
    try:
        found = read(lambda _: "\n".join(asked.packages), FILE)
        for text in asked.packages:
            Requirement(text)
            if "{{" in text:
                raise InvalidRequirement(text)
    except RequirementError as error:
        what = error.what.replace(" is not", ", which is not")
        raise ctx.refuse(what, component, hint="put it into the image, or name a package of an index") from None
    except InvalidRequirement:
        hint = "write a name, and a version if it matters: pandas==2.2.0"
        raise ctx.refuse(f"the invalid requirement {text!r}", component, hint=hint) from None
    return found
