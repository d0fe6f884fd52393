"""Models in service, an option of the chart: a pipeline's model answers, and versions change under load."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from trainyard.serving import rollout
from trainyard_dev import browser
from trainyard_dev.e2e import asking, options, runs
from trainyard_dev.e2e.checks import costs, serving_access, serving_others, serving_scale
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import DATA, MONITORING, SERVING, UPGRADES, WAITS, check
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.releases import changed, layer
from trainyard_dev.e2e.sites import served
from trainyard_dev.e2e.sites.served import MODEL, NAME, PIPELINE, SMALL

TITLES = {
    "serving.answers": "a pipeline registers a model, a member serves it, and a pod of the team gets predictions",
    "serving.rollout": "a second version and a rollback under load: no request fails; without readiness probes some do",
    "serving.upgrade": "upgrades allow and block a namespace; servers keep their pods, and no request fails",
    "serving.keys": "from outside only with a key: a missing, wrong or revoked key is refused",
    "serving.canary": "a canary answers its share of the requests, and is removed",
    "serving.strangers": "another team's pods reach no server, and its members change no server",
    "serving.page": "a digit drawn with the mouse in a real browser is recognized",
    "serving.gate": "a pipeline serves only models that are as good; a model that does not become ready is rolled back",
    "serving.scale": "one pod scales to four by CPU under load, and back to one",
    "serving.frameworks": "models of scikit-learn, ONNX and TensorFlow answer like their libraries",
    "serving.requests": "one pod scales to four by requests per second from prometheus-adapter, and back to one",
    "serving.off": "when disabled, nothing remains",
}
IMAGES = (*options.OFFERED, "trainer-torch", "pipeline", "argoexec", "metrics-server", "prometheus-adapter",
          *options.SERVERS)  # fmt: skip
REQUESTS, RATE = 20000, 200  # of one rollout: requests, and their number per second
FLOW = runs.FLOWS / "served" / "put.py"
BACK_S = 120.0  # until the previous version is back in service
FEW, LASTING = 8000, 12000  # longer than a pod takes to start on a busy machine; longer than two upgrades take


@check(*TITLES, each=True, rank=WAITS, needs=(DATA,), locks={SERVING, MONITORING}, shares={UPGRADES}, images=IMAGES,
       long=True,
       inputs=("charts/serving", "charts/model-server", "scripts/trainyard/serving", "scripts/model_server",
               "pipelines/serve.py", "scripts/trainyard_agent", "policies", "scripts/trainyard_dev/e2e/flows/served")
)  # fmt: skip
def on(context: Context) -> None:
    """Switched on, all checks in turn on one model, switched off again; nothing is left."""
    works = {
        "serving.answers": _answers, "serving.rollout": _rollout, "serving.upgrade": _upgrade,
        "serving.keys": serving_access.keys, "serving.canary": _canary, "serving.strangers": serving_access.strangers,
        "serving.page": serving_access.page, "serving.gate": _gate, "serving.scale": serving_scale.by_cpu,
        "serving.frameworks": serving_others.frameworks, "serving.requests": serving_scale.by_requests,
    }  # fmt: skip
    brought: dict[str, options.Objects] = {}
    with layer(context, f"{options.SERVING}.enabled=true") as values:
        brought = options.objects(context, [options.SERVING])
        try:
            for check_id, work in works.items():
                if not context.wants(check_id):
                    continue
                if check_id == "serving.page" and (missing := browser.missing()):
                    context.recorder.skip(check_id, TITLES[check_id], missing)
                    continue
                with context.recorder.check(check_id, TITLES[check_id]) as figures:
                    figures |= {"upgrade_seconds": values.seconds} if work is _answers else {}
                    work(context, figures)
        finally:
            runs.trainyard(context, "serve", "stop", MODEL, check=False)
    if context.wants("serving.off"):
        with context.recorder.check("serving.off", TITLES["serving.off"]) as figures:
            figures["gone"] = {one: len(objects) for one, objects in brought.items()}
            require(all(brought.values()), "serving was never enabled")
            left = options.left(context, brought)
            require(not left, f"still exists: {', '.join(left)}")


def _answers(context: Context, figures: dict[str, Any]) -> None:
    first, run = served.train(context, served.EPOCHS[0])  # registered, and stopped by the gate
    figures |= {"first version": first, "pipeline_seconds": round(run.seconds)}
    began = time.monotonic()
    out = served.serve(context, first, *served.USUAL)
    figures["in service after s"] = round(time.monotonic() - began)
    require(out == f"http://{NAME}.{NAMESPACE}.svc", f"`serve` printed {out!r}")
    seen = asking.load(context, MODEL, 50, 50)
    require(asking.failed(seen) == 0, f"{asking.failed(seen)} of 50 requests failed: {seen}")
    require(set(asking.versions(seen)) == {first}, f"{asking.versions(seen)} answered, but {first} is in service")
    second, again = served.train(context, served.EPOCHS[1])
    figures["second version"] = second
    require({row["version"]: row["inService"] for row in served.listed(context)} == {first: True, second: False},
            f"models list shows {served.listed(context)}")  # fmt: skip
    told = json.loads(runs.trainyard(context, "models", "compare", f"{MODEL}@{second}", "-o", "json", timeout=180)[1])
    figures["compared"] = told
    runs.forget(context, run, again)


def _rollout(context: Context, figures: dict[str, Any]) -> None:
    first, second = served.begin(context)
    with asking.LoadPod(context, MODEL, REQUESTS, RATE) as load:
        time.sleep(10)
        served.serve(context, second)
        runs.trainyard(context, "serve", "rollback", MODEL, timeout=served.READY_S)
        seen = load.ended()
    figures |= _figures(seen)
    require(asking.failed(seen) == 0, f"{asking.failed(seen)} of {REQUESTS} requests failed: {seen}")
    require(set(asking.versions(seen)) == {first, second}, f"both versions should have answered: {seen}")
    # The same without readiness, which only the platform can set: it must fail, or the load proves nothing.
    probes = [{"op": "remove", "path": f"/spec/template/spec/containers/0/{name}"} for name in
              ("readinessProbe", "startupProbe", "lifecycle")]  # fmt: skip
    name = f"deployment/{NAME}"
    context.kubectl("patch", name, "-n", NAMESPACE, "--type=json", "-p", json.dumps(probes))
    context.rolled_out(name, 300, NAMESPACE)
    with asking.LoadPod(context, MODEL, FEW, RATE) as load:
        context.kubectl("rollout", "restart", name, "-n", NAMESPACE)
        seen = load.ended()
    figures[f"failed without readiness, of {FEW}"] = asking.failed(seen)
    require(asking.failed(seen) > 0, "no request failed without readiness probes either: the load is too small")
    served.serve(context, first)


def _upgrade(context: Context, figures: dict[str, Any]) -> None:
    """One upgrade admits another namespace, one excludes it again: the effect of a values file on running servers."""
    first, _ = served.begin(context)
    served.serve(context, first, "--from", "namespaces")
    before, used = _pods(context), costs.look(context, (NAMESPACE,))
    there = context.namespace(serving_access.ELSEWHERE, wait=False)
    with there as other, asking.LoadPod(context, MODEL, LASTING, RATE) as load:
        ways, seconds = [serving_access.reached(context, other)], []
        with changed(context, f"{options.SERVING}.allowedNamespaces.{NAMESPACE}={{{other}}}") as took:
            seconds.append(took)
            ways.append(serving_access.reached(context, other))
        ways.append(serving_access.reached(context, other))
        seen = load.ended()
    now = costs.look(context, (NAMESPACE,))
    replicas = [costs.used(used[name], now[name]) for name in used if name.startswith(f"{NAME}-") and name in now]
    figures |= {"upgrade_seconds": seconds, "from another namespace": ways, "a replica's cost": replicas}
    figures |= {"requests": LASTING, "a second": round(LASTING / seen["seconds"]), "failed": asking.failed(seen)}
    require(ways == ["closed", "open", "closed"], f"access before, while and after it is allowed: {ways}")
    require(asking.failed(seen) == 0, f"{asking.failed(seen)} of {LASTING} requests failed: {seen}")
    require(_pods(context) == before, f"the pods were {before}, now they are {_pods(context)}")


def _pods(context: Context) -> list[str]:
    """The pods in service, without one that drains after an earlier change."""
    found = context.kubectl.get("pods", "-n", NAMESPACE, "-l", f"{rollout.LABEL}={MODEL}")
    return sorted(pod["metadata"]["uid"] for pod in found if not pod["metadata"].get("deletionTimestamp"))


def _figures(seen: dict[str, Any]) -> dict[str, Any]:
    return {
        "requests": REQUESTS,
        "failed": asking.failed(seen),
        "a second": round(REQUESTS / seen["seconds"]),
        "asked again on a new connection": seen["again"],
        "p50_ms": seen["p50_ms"],
        "p99_ms": seen["p99_ms"],
        "by version": asking.versions(seen),
    }


def _canary(context: Context, figures: dict[str, Any]) -> None:
    first, second = served.begin(context)
    served.serve(context, second, "--canary-share", "25", "--replicas", "4")
    seen = asking.versions(asking.load(context, MODEL, 2000, RATE, fresh=True))
    figures["share of the canary, %"] = share = round(100 * seen.get(second, 0) / 2000)
    require(10 <= share <= 45, f"the canary has one of four replicas and answered {share} % of 2000 requests")
    runs.trainyard(context, "serve", "rollback", MODEL, timeout=served.READY_S)
    seen = asking.versions(asking.load(context, MODEL, 100, 100, fresh=True))
    require(set(seen) == {first}, f"the canary answers after its removal: {seen}")


def _gate(context: Context, figures: dict[str, Any]) -> None:
    """Three runs: a better version, a worse one, and one whose file no server can load."""
    served.begin(context)
    run = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=5", "-p", "minimum=0.5", timeout=900)
    version = run.output("register-model", "version")
    figures |= {"served by the pipeline": version, "pipeline_seconds": round(run.seconds)}
    require(served.now(context) == version, f"{served.now(context)} is in service, not {version}")
    worse = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=1", "-p", "lr=0.0001", timeout=900)
    figures["held back"] = held = worse.output("register-model", "version")
    require(held and held != version, "the worse version was not registered")
    require("serve-model" not in worse.ran, f"the run served a version that failed the gate: {worse.ran}")
    require(served.now(context) == version, "a version that the gate held back is in service")
    broken = _broken(context)
    failing = runs.end(context, runs.submit(context, FLOW, "-p", f"version={broken}"), timeout=400)
    require(failing.phase == "Failed", f"the run of a version that cannot be loaded ended {failing.phase}")
    figures["why it went back"] = failing.why_failed
    require(f"{MODEL}@{version} is back" in failing.why_failed, f"the run's message is {failing.why_failed!r}")
    wait = patience(BACK_S)
    while (now := served.now(context)) != version:
        wait(f"{now} is in service, not {version}")
    seen = asking.load(context, MODEL, 100, 50)
    require(asking.failed(seen) == 0 and set(asking.versions(seen)) == {version}, f"after the rollback: {seen}")
    runs.forget(context, run, worse, failing)


def _broken(context: Context) -> str:
    """A registered version whose file is not a model; a member registers it."""
    with tempfile.TemporaryDirectory(prefix="broken-") as folder:
        (Path(folder) / "model.pt").write_bytes(b"no model at all")
        words = ("--framework", "pytorch", "--file", "model.pt", "--input", "image:FP32:-1,784",
                 "--output-tensor", "logits:FP32:-1,10", "--metric", "accuracy=0.99")  # fmt: skip
        _, out, _ = runs.trainyard(context, "models", "register", folder, MODEL, *words, "-o", "json", timeout=180)
    return str(json.loads(out)["version"])
