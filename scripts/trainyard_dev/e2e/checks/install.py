"""Installs the packaged chart with one command, and runs its self-test."""

import json
import time

from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.entry import check
from trainyard_dev.e2e.recorder import Figures, require
from trainyard_dev.e2e.releases import RELEASE, put, test, this_chart, values

CACHES = "workflows.argoproj.io/configmap-type=Cache"  # Argo's label of the ConfigMaps that cache steps


def install(context: Context) -> None:
    """One `helm install --wait` on the empty cluster."""
    with context.recorder.check("install.helm", "one helm install --wait on an empty cluster") as figures:
        package = this_chart()
        context.installed_at = float(int(time.time()))
        figures["package_kib"] = round(package.stat().st_size / 1024)
        if context.userspace_nfs:
            figures["nfs_client"] = "userspace mount.nfs, NFSv3 (test only)"
        with values(context) as files:
            figures["install_seconds"] = put(context, "install", files)
        secret = context.kubectl.get("secrets", "-n", SYSTEM, "-l", f"owner=helm,name={RELEASE}")[0]
        figures["release_secret_kib"] = round(len(json.dumps(secret["data"])) / 1024)
        require(
            figures["release_secret_kib"] < 700,
            f"the release Secret has {figures['release_secret_kib']} KiB, but only 700 are allowed",
        )


def again(context: Context) -> None:
    """Installs this tree's chart on a kept cluster: an upgrade, or an installation if there is no release."""
    with context.recorder.check("install.again", "this tree's chart on the kept cluster") as figures:
        context.installed_at = float(int(time.time()))
        with values(context) as files:
            held = context.kubectl.get("secrets", "-n", SYSTEM, "-l", f"owner=helm,name={RELEASE}")
            verb = "upgrade" if held else "install"
            figures["seconds"] = put(context, verb, files)
        # Steps that an earlier run has cached would not run again.
        context.kubectl("delete", "configmaps", "-n", SYSTEM, "-l", CACHES)


def await_images(context: Context) -> None:
    """Waits until the registry has all images that an installation starts; prints a message if that takes time."""
    if context.supply and (missing := context.supply.missing("install")):
        print(f"  waiting for images of the installation: {', '.join(missing)}", flush=True)
    if context.supply:
        with context.recorder.span("install", "waiting for images"):
            context.supply.wait_stage("install")


@check("install.helm-test", title="helm test: queues, priorities, storage class, buckets, contract", start=True)
def self_test(context: Context, _: Figures) -> None:
    """`helm test`: queues, priority classes, storage class, buckets, contract, seen from inside."""
    test(context)
