"""Runs a CronJob of the platform at once, as `kubectl create job --from` does."""

import json
import time

from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.recorder import CheckError, patience


def run(context: Context, cronjob: str, env: dict[str, str] | None = None, timeout: float = 150) -> str:
    """Runs the CronJob with additional environment variables; returns its log and removes the job.

    Raises:
        CheckError: it failed or did not end in `timeout` seconds; the sentence has the end of its log.
    """
    name, kubectl = f"check-{cronjob.removeprefix('trainyard-')}-{time.time_ns() % 10**8}", context.kubectl
    made = kubectl("create", "job", name, "-n", SYSTEM, f"--from=cronjob/{cronjob}", "--dry-run=client", "-o", "json")
    job = json.loads(made.stdout)
    spec = job["spec"]
    spec["backoffLimit"] = 0
    container = spec["template"]["spec"]["containers"][0]
    container.setdefault("env", []).extend({"name": key, "value": value} for key, value in (env or {}).items())
    kubectl.apply([job], SYSTEM)
    try:
        wait = patience(timeout, 0.5)
        while not (outcome := jobs.outcome(kubectl.get("job", name, "-n", SYSTEM)[0])):
            wait(f"the job of {cronjob} did not end within {timeout:.0f} s")
        log = kubectl("logs", "-n", SYSTEM, f"job/{name}", check=False).stdout.strip()
        if outcome != "succeeded":
            raise CheckError(f"the job of {cronjob} {outcome}: {' | '.join(log.splitlines()[-3:])}")
        return log
    finally:
        kubectl("delete", "job", name, "-n", SYSTEM, "--wait=false", check=False)
