"""Pipelines made elsewhere, on the cluster: workflows written for Argo, components from YAML, objects of any kind."""

import time

from trainyard_dev.e2e import runs, store
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import GPUS, PIPELINE_CODE, check
from trainyard_dev.e2e.recorder import CheckError, patience, require
from trainyard_dev.e2e.runs import FLOWS, Seen

FLOW = FLOWS / "elsewhere"
BUCKET = "runs"
RUN_S = 300
VCJOBS, JOBS = ("batch.volcano.sh/v1alpha1", "jobs"), ("batch/v1", "jobs")


@check("elsewhere.workflow", "elsewhere.component", "elsewhere.object", "elsewhere.object-refused",
       each=True, shares={GPUS}, images=("argoexec", "pipeline"),
       inputs=(*PIPELINE_CODE, "scripts/trainyard_dev/e2e/flows"))  # fmt: skip
def brought(context: Context) -> None:
    """Runs each of them."""
    if context.wants("elsewhere.workflow"):
        _workflow(context)
    if context.wants("elsewhere.component"):
        _component(context)
    if context.wants("elsewhere.object"):
        _object(context)
    if context.wants("elsewhere.object-refused"):
        _refused(context)


def _workflow(context: Context) -> None:
    title = "a workflow written for Argo runs unchanged: steps, dag, container set, resource template, files"
    with context.recorder.check("elsewhere.workflow", title) as figures:
        word = f"whale{time.time_ns() % 1000}"
        seen = runs.succeed(context, FLOW / "workflow.yaml", "-p", f"word={word}", timeout=RUN_S)
        figures |= {"seconds": round(seen.seconds), "pods": len(seen.pods)}
        _whose(seen)
        said = seen.output("tell", "said")
        letters, _, job = said.partition(" letters, ")
        require(letters.strip() == str(len(word)), f"the last step said {said!r}")
        made = context.kube.find(context.kube.path(*VCJOBS, job, namespace=NAMESPACE))
        if made is None:
            raise CheckError(f"the Job {job} does not exist")
        owners = [one["uid"] for one in made["metadata"].get("ownerReferences", [])]
        require(owners == [seen.workflow["metadata"]["uid"]], f"the Job {job} belongs to {owners}")
        with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as s3:
            names = s3.names(BUCKET, f"{NAMESPACE}/elsewhere/")
            require(any(name.endswith(f"{seen.name}.txt") for name in names), f"the artifact lies among {names}")
        runs.forget(context, seen)


def _component(context: Context) -> None:
    with context.recorder.check("elsewhere.component", "a component from YAML runs among Python components") as figures:
        seen = runs.succeed(context, FLOW / "counted.py", "-p", f"salt={time.time_ns()}", "--no-cache", timeout=RUN_S)
        _whose(seen)
        said = seen.output("tell")
        figures |= {"seconds": round(seen.seconds), "said": said}
        require(said == '4 {"total": 4}', f"the last step said {said!r}")
        runs.forget(context, seen)


def _object(context: Context) -> None:
    title = "a step creates a Job of two pods and waits for both; the Job is deleted with the run"
    with context.recorder.check("elsewhere.object", title) as figures:
        seen = runs.succeed(
            context, FLOW / "objects.py", "--name", "objects", "-p", f"queue={NAMESPACE}", "--no-cache", timeout=RUN_S
        )
        figures["seconds"] = round(seen.seconds)
        value, name = seen.output("create-object", "value"), seen.output("create-object", "name")
        require(value == "2", f"the step returned {value!r}")
        path = context.kube.path(*JOBS, name, namespace=NAMESPACE)
        require(context.kube.find(path), f"the Job {name} does not exist")
        _, log, _ = runs.trainyard(context, "runs", "logs", seen.name, "create-object")
        waits = [line for line in log.splitlines() if "waits: " in line]
        require(
            waits and "wanted: status.succeeded > 1" in waits[0],
            f"the step's log lacks its wait condition: {log}",
        )
        runs.forget(context, seen)
        wait = patience(60, 1)
        while context.kube.find(path):
            wait(f"the Job {name} still exists 60 s after its run was deleted")


def _refused(context: Context) -> None:
    title = "lint refuses objects that steps may not create; at run time the API server refuses them"
    with context.recorder.check("elsewhere.object-refused", title) as figures:
        code, _, said = runs.trainyard(context, "submit", FLOW / "objects.py", "--name", "linted", check=False)
        words = "TY110 [create-object manifest.kind] steps of pipelines may not create a Pod (pods)"
        require(code == 2 and words in said, f"submit ended with {code} and said: {said[-600:]}")
        code, _, said = runs.trainyard(
            context,
            "submit",
            FLOW / "objects.py",
            "--name",
            "refused",
            "--wait",
            "-o",
            "json",
            check=False,
            timeout=RUN_S,
        )
        words = f'User "system:serviceaccount:{NAMESPACE}:pipeline" cannot create resource "pods"'
        require(code == 1 and words in said, f"submit ended with {code} and said: {said[-600:]}")
        figures["said"] = words


def _whose(seen: Seen) -> None:
    """Checks that pods have the team's queue, scheduler and account."""
    require(seen.pods, "none of its pods was seen")
    runs.require_ours(seen)
