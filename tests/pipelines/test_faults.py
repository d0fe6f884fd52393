"""What fails fails visibly: phases, attempts, messages, signals."""

from pathlib import Path

import pytest
import samples
from kfp import dsl
from pipeline_harness import MERGE, WORKFLOWS, PipelineHarness, Run, member
from test_graphs import guarded as guarded_shell

from trainyard.errors import TrainyardError


@dsl.pipeline(name="guarded")
def guarded(folder: str, reason: str):
    final = samples.status(folder=folder)
    with dsl.ExitHandler(final):
        samples.broken(reason=reason)


def test_a_failed_task_fails_the_run_and_the_exit_task_still_runs(harness: PipelineHarness, tmp_path: Path) -> None:
    run = harness.run(guarded, {"folder": str(tmp_path), "reason": "no labels"})
    assert run.phase == "Failed", run.summary()
    # The exit task is told which task failed, and with what words.
    assert (tmp_path / "status").read_text() == (
        "FAILED exit-handler-1: broken(0): main: Error (exit code 1): ValueError: no labels"
    )
    # One readable line: no frames, none of what the executor prints.
    assert {one["message"] for one in run.pods("broken")} == {"main: Error (exit code 1): ValueError: no labels"}
    assert "Traceback" in run.log()


@dsl.pipeline(name="plain")
def plain(script: str):
    samples.shell(script=script)


@pytest.mark.parametrize("fault", ["upload", "evicted"])
def test_what_infrastructure_breaks_is_tried_again(harness: PipelineHarness, tmp_path: Path, fault: str) -> None:
    harness.kubelet.faults["shell"] = [fault]
    run = harness.run(plain, {"script": f"true {tmp_path}"})
    assert run.phase == "Succeeded", run.summary()
    assert len(run.pods()) == 2


def test_a_command_that_was_told_to_go_is_tried_again(harness: PipelineHarness, tmp_path: Path) -> None:
    """As a preempted pod's is, before it vanishes."""
    script = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; kill -TERM $$; }}"
    run = harness.run(plain, {"script": script})
    assert (run.phase, len(run.pods())) == ("Succeeded", 2), run.summary()


def test_a_killed_controller_repeats_nothing(harness: PipelineHarness, tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/began; while ! test -e {tmp_path}/go; do sleep 0.1; done"
    run = harness.start(plain, {"script": script}).wait(lambda run: (tmp_path / "began").exists())
    harness.controller.kill()
    (tmp_path / "go").touch()
    harness.controller.start()
    assert run.wait().phase == "Succeeded"
    assert (tmp_path / "began").read_text() == "x\n" and len(run.pods()) == 1


def test_a_stopped_run_ends_its_commands(harness: PipelineHarness, tmp_path: Path) -> None:
    script = (
        f"trap 'echo cleaned up > {tmp_path}/seen; exit 143' TERM; touch {tmp_path}/began; while :; do sleep 0.1; done"
    )
    run = harness.start(plain, {"script": script}).wait(lambda run: (tmp_path / "began").exists())
    stop(run, "Stop")
    assert run.wait().phase == "Failed"
    # Argo calls it failed as soon as it has sent the signal.
    run.wait(lambda run: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text() == "cleaned up\n")


def test_braces_and_quotes_in_a_failure_reach_the_exit_task_as_text(harness: PipelineHarness, tmp_path: Path) -> None:
    script = """printf 'no {%s} of "%s" \\n: %s\n' '{item}' a '{{=1+1}}' | tr -d '#' >&2; exit 3""".replace(
        "{{=", "{#{="
    )
    run = harness.run(guarded_shell, {"folder": str(tmp_path), "script": script})
    assert run.phase == "Failed", run.summary()
    reported = (tmp_path / "status").read_text()
    assert 'no { {item}} of "a"\n: { {=1+1}}' in reported, reported


def test_failures_without_end_still_reach_the_exit_task(harness: PipelineHarness, tmp_path: Path) -> None:
    @dsl.pipeline(name="many-failures")
    def many(folder: str):
        with dsl.ExitHandler(samples.status(folder=folder)), dsl.ParallelFor(list(range(12))) as number:
            samples.shell(script=f"yes 'no such file \"data\"' | head -c 1900 >&2; exit 3 # {number}")

    run = harness.run(many, {"folder": str(tmp_path)})
    assert run.phase == "Failed", run.summary()
    reported = (tmp_path / "status").read_text()
    assert reported.startswith("FAILED exit-handler-1: shell") and reported.count("exit code 3") >= 2, reported


def test_the_exit_task_runs_after_a_stop(harness: PipelineHarness, tmp_path: Path) -> None:
    script = f"touch {tmp_path}/began; while :; do sleep 0.1; done"
    run = harness.start(guarded_shell, {"folder": str(tmp_path), "script": script})
    run.wait(lambda run: (tmp_path / "began").exists())
    stop(run, "Stop")
    assert run.wait().phase == "Failed"
    assert (tmp_path / "status").exists(), run.summary()
    assert (tmp_path / "status").read_text().startswith("FAILED exit-handler-1")


def stop(run: Run, how: str) -> None:
    """What `trainyard runs stop` does, as a member."""
    path = f"{WORKFLOWS.format(run.team)}/{run.name}"
    answer = run.harness.server.call(
        "PATCH", path, {"spec": {"shutdown": how}}, content=MERGE, identity=member(run.team)
    )
    assert answer.ok, answer.message


@dsl.pipeline(name="big-output")
def big_output(upto: int):
    samples.numbers(upto=upto)


def test_a_big_parameter_is_refused_by_name(harness: PipelineHarness) -> None:
    run = harness.run(big_output, {"upto": 30000})
    assert run.phase == "Failed"
    assert "output parameter made has 168895 bytes, a parameter may have 100000: write it as an artifact" in run.message
    with pytest.raises(TrainyardError, match=r"script has 200,000 bytes, at most 100,000 are allowed.*artifacts"):
        harness.workflow(plain, {"script": "x" * 200_000})
