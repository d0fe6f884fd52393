"""Entry point of the platform image: `python3 -m trainyard_agent <command>`."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from trainyard_agent.say import PlatformError, fail


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainyard_agent", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    prep = commands.add_parser("node-prep", help="label and taint the node that this pod runs on, forever")
    prep.add_argument("--period", type=float, default=15.0, help="seconds between two readings")
    prep.add_argument("--driver-root", default="/driver-root", help="folder with the driver's usr/lib")
    prep.add_argument("--contract", default="/etc/trainyard/contract.json")
    prep.add_argument("--once", action="store_true", help="run once and end")

    setup = commands.add_parser("setup", help="wait for the operators, then apply queues, buckets and their user")
    setup.add_argument("--timeout", type=float, default=240.0, help="seconds for everything together")
    setup.add_argument("--plan", default="/etc/trainyard-setup/plan.json")
    setup.add_argument("--contract", default="/etc/trainyard/contract.json")

    crds = commands.add_parser(
        "crds", help="before an upgrade: bring CRDs that Helm never moves to this release's state"
    )
    crds.add_argument("--folder", required=True, help="one JSON file for each CRD")
    crds.add_argument("--timeout", type=float, default=120.0, help="seconds for everything together")

    retire = commands.add_parser("retire", help="before an upgrade: end a Deployment that others take over from")
    retire.add_argument("--deployment", required=True)
    retire.add_argument("--timeout", type=float, default=120.0, help="seconds until its pods are gone")

    teardown = commands.add_parser("teardown", help="before an uninstallation: stop what would hang, name what stays")
    teardown.add_argument("--plan", default="/etc/trainyard-teardown/plan.json")
    teardown.add_argument("--timeout", type=float, default=240.0, help="seconds for everything together")

    cache = commands.add_parser("dataset-cache", help="copy the contract's data sets to the shared volume")
    cache.add_argument("--contract", default="/etc/trainyard/contract.json")
    cache.add_argument("--to", required=True, help="where the shared volume is mounted")

    janitor = commands.add_parser("janitor", help="remove claims of finished runs and unused results of steps, once")
    janitor.add_argument("--contract", default="/etc/trainyard/contract.json")
    janitor.add_argument("--kinds", required=True, help="what a run can be: group/version/plural, with commas between")
    janitor.add_argument("--results-unused-for", default="", help="such as 720h: how long a step's result stays unused")

    keys = commands.add_parser("s3-keys", help="end keys that were replaced and that no pod holds, once")
    keys.add_argument("--contract", default="/etc/trainyard/contract.json")
    keys.add_argument("--transition", default="", help="ConfigMap of a store that came to speak TLS")

    for name, text in (("backup", "back up buckets and workspaces"), ("restore", "list backups, or restore one")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--contract", default="/etc/trainyard/contract.json")
        command.add_argument("--export", default="", help="where the file server's export is mounted")
        command.add_argument("--to", default="/backup", help="folder of the backups")
        command.add_argument("--to-bucket", default="", help="bucket of the backups instead, in the store of TARGET_…")
        command.add_argument("--to-prefix", default="", help="backups lie below it")
        if name == "backup":
            command.add_argument("--buckets", default="", help="which buckets, with commas between them")
            command.add_argument("--keep", type=int, required=True, help="how many backups stay")

    claim = commands.add_parser("claim", help="make a claim unless it is there")
    claim.add_argument("--name", required=True)
    claim.add_argument("--size", required=True)
    claim.add_argument("--storage-class", default="", help="empty: the cluster's default")

    cert = commands.add_parser("webhook-cert", help="put a certificate into a Secret unless it holds a good one")
    cert.add_argument("--secret", required=True)
    cert.add_argument("--namespace", required=True, help="namespace of the Secret")
    cert.add_argument("--dns", required=True, action="append", help="a name that the webhook has; may be repeated")
    cert.add_argument("--ca-name", required=True)
    cert.add_argument("--to", required=True, help="folder for ca.crt, tls.crt and tls.key")

    hook = commands.add_parser("launcher-webhook", help="close the init container of MPI launchers, forever")
    hook.add_argument("--certs", required=True, help="folder with ca.crt, tls.crt, tls.key")
    hook.add_argument("--port", type=int, required=True)
    hook.add_argument("--configuration", required=True, help="name of the MutatingWebhookConfiguration")

    objects = commands.add_parser(
        "objects", help="for `trainyard` on a member's machine: one object, or all of a folder"
    )
    operations = ("put", "get", "stat", "list", "folders", "tree", "idle", "compare", "fill", "sets", "files", "remove",
                  "models")  # fmt: skip
    objects.add_argument("operation", choices=operations)
    objects.add_argument("place", nargs="?", default="", metavar="BUCKET/KEY", help="of a folder also /its/path")
    objects.add_argument("--size", type=int, default=0, help="put: bytes that come")
    objects.add_argument("--sha256", default="", help="put: their digest")
    objects.add_argument("--seconds", type=float, default=120.0, help="idle: without an operation until it ends")

    files = commands.add_parser("run-files", help="beside a training command: bring code in, take results out")
    files.add_argument("operation", choices=("fetch", "upload", "keep"))
    files.add_argument("--into", "--from", dest="root", required=True, help="folder that the command runs in")
    files.add_argument("--folder", action="append", default=[], help="below it: made by fetch, copied by upload")
    files.add_argument("--code", default="", metavar="BUCKET/KEY", help="fetch: archive to unpack")
    files.add_argument("--sha256", default="", help="fetch: its digest")
    files.add_argument(
        "--restore", action="append", default=[], metavar="BUCKET/PREFIX=FOLDER", help="fetch: copy back"
    )
    files.add_argument("--to", default="", metavar="BUCKET/PREFIX", help="upload: where to")
    files.add_argument("--every", type=float, default=30.0, help="upload: seconds between two rounds")
    files.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="upload: told to MLflow")
    files.add_argument("--only", default="", help="upload: do nothing unless the pod's name ends like this")
    files.add_argument("--requirements", default="", help="fetch: file of the code that names its packages")
    files.add_argument("--packages", default="", metavar="BUCKET/KEY", help="fetch, keep: archive of its packages")
    files.add_argument("--wheels", default="", metavar="BUCKET/PREFIX", help="fetch: where the platform's wheels are")
    files.add_argument("--base", default="", help="fetch, keep: folder of the packages")

    events = commands.add_parser("event-files", help="beside TensorBoard: bring event files of the store, forever")
    events.add_argument("places", nargs="+", metavar="BUCKET/PREFIX=FOLDER")
    events.add_argument("--into", required=True, help="folder that TensorBoard reads")
    events.add_argument("--every", type=float, default=10.0, help="seconds between two readings")

    model = commands.add_parser("model", help="before a server starts: bring the version that it serves, and check it")
    model.add_argument("--from", dest="source", required=True, metavar="s3://BUCKET/PREFIX|FOLDER")
    model.add_argument("--into", required=True, help="folder that the server reads")
    model.add_argument("--name", required=True)
    model.add_argument("--version", required=True)
    model.add_argument("--digest", default="", help="of the model's file; empty: what its card says")

    gate = commands.add_parser("queue-gate", help="beside the scheduler: keep the order of queues, forever")
    gate.add_argument("--port", type=int, required=True)

    view = commands.add_parser("gpu-view", help="publish free and held GPUs for teams, who see no nodes, forever")
    view.add_argument("--period", type=float, default=30.0, help="seconds between two readings")
    view.add_argument("--contract", default="/etc/trainyard/contract.json")

    series = commands.add_parser("store-metrics", help="write how Prometheus asks the store in the cluster, once")
    series.add_argument("--to", required=True, help="folder for the configuration, a token and the store's authority")

    series = commands.add_parser("exporter", help="series about jobs, queues, nodes and more for Prometheus, forever")
    series.add_argument("--period", type=float, default=15.0, help="seconds between two readings")
    series.add_argument("--port", type=int, default=9400)
    series.add_argument("--contract", default="/etc/trainyard/contract.json")
    series.add_argument("--kinds", required=True, help="what a job can be: group/version/plural, with commas between")

    mock = commands.add_parser("mock-dcgm", help="series of mock GPUs as NVIDIA's DCGM exporter has them, forever")
    mock.add_argument("--root", required=True, help="driver root of the mock")
    mock.add_argument("--devices", required=True, help="kubelet's folder of device plugins")
    mock.add_argument("--port", type=int, default=9400)
    mock.add_argument("--period", type=float, default=5.0, help="seconds between two readings")

    usage = commands.add_parser("usage", help="publish what jobs used of what they asked for, forever")
    usage.add_argument("--prometheus", required=True, metavar="URL", help="whose query API is asked")
    usage.add_argument("--period", type=float, default=120.0, help="seconds between two readings")
    usage.add_argument("--scrape", default="30s", help="time between two samples of Prometheus, such as 30s")
    usage.add_argument("--contract", default="/etc/trainyard/contract.json")
    usage.add_argument("--once", action="store_true", help="run once and end")

    test = commands.add_parser("selftest", help="check that what the contract promises is there")
    test.add_argument("--without-storage-class", action="store_true")
    test.add_argument("--without-queues", action="store_true")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; a PlatformError prints its sentence and sets the exit status, 1 unless its class has another."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "node-prep":
            from trainyard_agent.install import node_prep

            return node_prep.run(args.contract, args.driver_root, args.period, os.environ["NODE_NAME"], once=args.once)
        if args.command == "setup":
            from trainyard_agent.install import setup

            return setup.run(args.plan, args.contract, args.timeout)
        if args.command == "crds":
            from trainyard_agent.install import crds

            return crds.run(args.folder, args.timeout)
        if args.command == "retire":
            from trainyard_agent.install import retire

            return retire.run(args.deployment, args.timeout)
        if args.command == "teardown":
            from trainyard_agent.install import teardown

            return teardown.run(args.plan, args.timeout)
        if args.command == "dataset-cache":
            from trainyard_agent.store import cache

            return cache.run(args.contract, args.to)
        if args.command == "janitor":
            from trainyard_agent.runs import janitor, step_results

            unused = args.results_unused_for
            return janitor.run(args.contract, args.kinds, step_results.duration(unused) if unused else None)
        if args.command == "s3-keys":
            from trainyard_agent.store import s3_keys

            return s3_keys.run(args.contract, args.transition)
        if args.command in ("backup", "restore"):
            from trainyard_agent.store import backup, restore

            target = backup.target_of(args.to, args.to_bucket, args.to_prefix)
            if args.command == "restore":
                return restore.run(args.contract, args.export, target, os.environ)
            buckets = [name for name in args.buckets.split(",") if name]
            return backup.run(args.contract, buckets, args.export, target, args.keep, datetime.now(UTC))
        if args.command == "claim":
            from trainyard_agent.install import claim

            return claim.run(args.name, args.size, args.storage_class)
        if args.command == "webhook-cert":
            from trainyard_agent.api import Api
            from trainyard_agent.install import webhook_cert

            place = webhook_cert.Place(args.namespace, args.secret)
            return webhook_cert.run(Api(), place, args.dns, args.ca_name, Path(args.to))
        if args.command == "launcher-webhook":
            from trainyard_agent.runs import launcher

            return launcher.run(args.certs, args.port, args.configuration)
        if args.command == "objects":
            from trainyard_agent.store import objects

            if args.operation == "idle":
                return objects.idle(args.seconds)
            if args.operation in ("compare", "fill", "sets", "files", "remove"):
                from trainyard_agent.store import data_sets

                return data_sets.run(args.operation, args.place)
            if args.operation == "models":
                from trainyard_agent.runs import models

                return models.listed(args.place)
            bucket, _, key = args.place.partition("/")
            return objects.run(args.operation, bucket, key, args.size, args.sha256)
        if args.command == "run-files":
            from trainyard_agent.runs import layers, run_files

            if args.operation == "keep":
                return layers.keep(args.base, args.packages)
            if args.operation == "fetch":
                run_files.fetch(args.root, args.code, args.sha256, args.folder, args.restore)
                if args.packages:
                    layers.fetch(args.base, args.root, args.requirements, args.packages, args.wheels)
                return 0
            return run_files.upload(args.root, args.to, args.folder, args.every, args.only, args.param)
        if args.command == "event-files":
            from trainyard_agent.runs import event_files

            return event_files.run(args.places, args.into, args.every)
        if args.command == "model":
            from trainyard_agent.runs import models

            return models.run(args.source, args.into, args.name, args.version, args.digest)
        if args.command == "queue-gate":
            from trainyard_agent.install import gate

            return gate.run(args.port)
        if args.command == "gpu-view":
            from trainyard_agent.usage import gpu_view

            return gpu_view.run(args.contract, args.period)
        if args.command == "store-metrics":
            from trainyard_agent.store import store_metrics

            store_metrics.write(Path(args.to))
            return 0
        if args.command == "exporter":
            from trainyard_agent.exporter import model, serve

            known = [kind for kind in args.kinds.split(",") if kind and kind != model.WORKFLOWS]
            return serve.run(args.contract, known, args.period, args.port)
        if args.command == "mock-dcgm":
            from trainyard_agent.exporter import mock_dcgm

            return mock_dcgm.run(os.environ.get("NODE_NAME", ""), args.root, args.devices, args.port, args.period)
        if args.command == "usage":
            from trainyard_agent.runs import step_results
            from trainyard_agent.usage import jobs

            scrape = step_results.duration(args.scrape).total_seconds()
            return jobs.run(args.contract, args.prometheus, args.period, scrape, once=args.once)
        from trainyard_agent.install import selftest

        return selftest.run(storage_class=not args.without_storage_class, queues=not args.without_queues)
    except PlatformError as failure:
        return fail(failure)


if __name__ == "__main__":
    sys.exit(main())
