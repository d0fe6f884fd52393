"""A script of somebody who uses KFP: kfp's client alone, which finds its server in the environment."""

import sys
import tempfile
from pathlib import Path

from kfp import Client, compiler, dsl

IMAGE = sys.argv[1]


@dsl.component(base_image=IMAGE)
def score(factor: float, metrics: dsl.Output[dsl.Metrics]) -> float:
    metrics.log_metric("accuracy", factor / 2)
    return 2 * factor


@dsl.component(base_image=IMAGE)
def sleep(seconds: int):
    import time

    time.sleep(seconds)


@dsl.pipeline(name="scores")
def scores(factor: float = 1.5):
    score(factor=factor)


@dsl.pipeline(name="sleeping")
def sleeping(seconds: int = 300):
    sleep(seconds=seconds)


def main() -> None:
    client = Client()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "scores.yaml"
        compiler.Compiler().compile(scores, str(package))
        pipeline = client.upload_pipeline(str(package), f"scores of {sys.argv[2]}")
        version = client.upload_pipeline_version(str(package), "second", pipeline_id=pipeline.pipeline_id)
        experiment = client.create_experiment("kfp's client").experiment_id
        run = client.run_pipeline(experiment, "from a script", pipeline_id=pipeline.pipeline_id,
                                  version_id=version.pipeline_version_id, params={"factor": 1.8})  # fmt: skip
        done = client.wait_for_run_completion(run.run_id, timeout=240, sleep_duration=2)
        print("run", done.run_id, done.state, done.error.message if done.error else "")
        print("accuracy", done.plugins_output["metrics"].entries["score.accuracy"].value)
        nightly = client.create_recurring_run(experiment, "nightly", cron_expression="0 0 4 * * *",
                                              pipeline_package_path=str(package))  # fmt: skip
        client.disable_recurring_run(nightly.recurring_run_id)
        print("schedule", client.get_recurring_run(nightly.recurring_run_id).status)
        client.delete_recurring_run(nightly.recurring_run_id)
    long = client.create_run_from_pipeline_func(sleeping, experiment_id=experiment)
    client.terminate_run(long.run_id)
    print("stopped", client.wait_for_run_completion(long.run_id, 120, 2).error.message)
    listed = client.list_runs(experiment_id=experiment, sort_by="created_at desc").runs
    print("listed", [one.display_name for one in listed][-1])


if __name__ == "__main__":
    main()
