"""Commands that start ranks themselves, as `trainyard train` and steps of pipelines make MPIJobs of them."""

from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard.kinds.mpi_launch import translated

SCRIPT = ["python", "train.py", "--lr", "0.1"]
FOUR = "server1:4,server2:4,server3:4,server4:4"


def made(command: list[str], folder: Path = Path("/nowhere"), **settings: Any) -> tuple[dict[str, Any], str]:
    return translated({"command": command, **settings}, folder)


def test_horovodrun_on_four_servers_is_an_mpijob_of_four_nodes_and_says_so() -> None:
    found, said = made(["horovodrun", "-np", "16", "-H", FOUR, *SCRIPT])
    assert found == {"command": SCRIPT, "framework": "mpi", "nodes": 4, "processes": 4}
    assert said == (
        "horovodrun is run as an MPIJob: 4 nodes with 4 ranks each, which the queue chooses in place of server1, "
        "server2, server3, …; without GPUs; for one per rank, add --gpus 4"
    )
    _, said = made(["horovodrun", "-np", "16", "-H", FOUR, *SCRIPT], gpus=4)
    assert said.endswith("in place of server1, server2, server3, …")


@pytest.mark.parametrize(
    ("words", "given", "nodes", "processes"),
    [
        ("horovodrun -np 4", {}, 1, 4),
        ("horovodrun -np 4", {"nodes": 2}, 2, 2),
        ("horovodrun -np 16", {"gpus": 4}, 4, 4),
        ("horovodrun -np 2", {"gpus": 4}, 1, 2),
        ("horovodrun -np 8", {"processes": 2}, 4, 2),
        ("horovodrun --num-proc=8 --hosts=a:4,b:4", {}, 2, 4),
        ("horovodrun -np 4 -H a:4,b:4", {}, 1, 4),  # hosts are filled in their order
        ("horovodrun -H a:2,b:2", {}, 2, 2),
        ("mpirun -np 4 -H a:2,b:2", {"nodes": 2}, 2, 2),
        ("mpirun -n 4 --host a,a,b,b", {}, 2, 2),
        ("mpirun -npernode 2 -H a:4,b:4", {}, 2, 2),
        ("/usr/bin/mpirun --np 4 -N 2", {}, 2, 2),
    ],
)
def test_sizes(words: str, given: dict[str, Any], nodes: int, processes: int) -> None:
    found, said = made([*words.split(), *SCRIPT], **given)
    assert (found["nodes"], found["processes"], found["command"]) == (nodes, processes, SCRIPT)
    assert found["framework"] == "mpi" and "is run as an MPIJob" in said


@pytest.mark.parametrize(
    ("words", "gpus", "says"),
    [
        ("horovodrun -np 4 -H a:4", 1, "4 ranks share 1 GPU on each node; for one per rank, use --gpus 4"),
        ("horovodrun -np 4 -H a:2,b:2", 8, "8 GPUs on each node for 2 ranks; for one per rank, use --gpus 2"),
        ("horovodrun -np 2 -H a:1,b:1", 2, "2 GPUs on each node for 1 rank; for one per rank, use --gpus 1"),
    ],
)
def test_ranks_that_share_gpus_and_gpus_without_a_rank_are_said(words: str, gpus: int, says: str) -> None:
    assert made([*words.split(), *SCRIPT], gpus=gpus)[1].endswith(f"; {says}")


@pytest.mark.parametrize(
    "command",
    [["bash", "-c", "cd x && horovodrun -np 4 python x.py"], ["env", "X=1", "/usr/bin/horovodrun", "python", "x.py"]],
)
def test_horovodrun_behind_another_program_is_refused_where_no_image_has_it(command: list[str]) -> None:
    with pytest.raises(UsageError, match="no image of the platform has horovodrun") as refused:
        made(command)
    assert "begin the command with horovodrun" in refused.value.hint
    assert made(command, image="own/image:1")[1] == ""
    assert made(["python", "x.py", "--with", "horovodrun"])[1] == ""


def test_a_file_of_hosts_beside_the_code(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# ours\nserver1 slots=2\nserver2 slots=2 max_slots=4\n\n")
    found, said = made(["mpirun", "-np", "4", "--hostfile", "hosts", *SCRIPT], tmp_path)
    assert (found["nodes"], found["processes"]) == (2, 2) and "in place of server1, server2" in said


def test_variables_and_options_of_both_are_kept() -> None:
    found, _ = made(
        ["horovodrun", "-np", "2", "--fusion-threshold-mb", "32", "--autotune", "--timeline-filename=t.json", *SCRIPT],
        env={"HOROVOD_TIMELINE": "mine.json"},
    )
    assert found["env"] == {
        "HOROVOD_FUSION_THRESHOLD": "33554432", "HOROVOD_AUTOTUNE": "1", "HOROVOD_TIMELINE": "mine.json",
    }  # fmt: skip
    words = (
        "mpirun -np 4 -H a:2,b:2 -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH --allow-run-as-root -bind-to none -mca pml ob1"
    )
    found, _ = made([*words.split(), *SCRIPT])
    assert found["env"] == {"NCCL_DEBUG": "INFO"}
    assert found["command"] == ["mpirun", "-np", "4", "-bind-to", "none", "-mca", "pml", "ob1", *SCRIPT]


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py"],
        ["mpirun", "--some-new-option", "python", "train.py"],
        ["mpirun", "-np", "2", "--some-new-option", "3", "python", "train.py"],
    ],
)
def test_what_starts_no_ranks_or_can_not_be_read_stays_as_it_is(command: list[str]) -> None:
    assert made(command) == ({"command": command}, "")


def test_mpirun_that_names_no_size_is_an_mpijob_all_the_same() -> None:
    command = ["mpirun", "--bind-to", "none", *SCRIPT]
    assert made(command, nodes=3) == ({"command": command, "framework": "mpi", "nodes": 3}, "")


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        ("horovodrun -np 6 -H a:4,b:4 python x.py", {}, "the hosts would have 4, 2 ranks, but all nodes of a job need"),
        ("horovodrun -np 9 -H a:4,b:4 python x.py", {}, "9 ranks are more than the 8 slots of the hosts"),
        (
            "horovodrun -np 16 -H a:4,b:4,c:4,d:4 python x.py",
            {"nodes": 2},
            "horovodrun says nodes 4, but the settings say 2",
        ),
        ("horovodrun -np 4 -H a:2,b:2 python x.py", {"processes": 1}, "says processes 2, but the settings say 1"),
        ("horovodrun -np 3 python x.py", {"nodes": 2}, "3 ranks can't be shared equally by 2 nodes"),
        ("horovodrun -np four python x.py", {}, "-np is 'four'"),
        ("horovodrun -np 4 -H a:0 python x.py", {}, "invalid host: 'a:0'"),
        ("horovodrun --gloo -np 4 python x.py", {}, "horovodrun's option --gloo can't be kept"),
        ("horovodrun --min-np 2 -np 4 python x.py", {}, "horovodrun's option --min-np can't be kept"),
        ("horovodrun -np 4", {}, "no program is named"),
        ("horovodrun -np 4 --hostfile none python x.py", {}, "the hostfile none can't be read"),
        ("mpirun -H a:2,b:2 --new 1 python x.py", {}, "mpirun's option --new can't be kept"),
        ("mpirun -np 4 python x.py", {"framework": "pytorch"}, "starts ranks by MPI, but framework is pytorch"),
        ("horovodrun -np 5000 -H a:5000 python x.py", {}, "horovodrun: processes is 5000. use at most 256"),
    ],
)
def test_what_an_mpijob_can_not_be_is_refused(words: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(words.split(), **given)
    assert says in str(caught.value) and caught.value.hint
