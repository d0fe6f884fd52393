"""mpirun of the trainer images: version 5 supports the commands of an operator written for Open MPI 4."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images/trainer-torch/mpirun"
AGENT, HOSTS = "/etc/mpi/kubexec.sh", "/etc/mpi/hostfile"
OPERATOR = {"OMPI_MCA_plm_rsh_agent": AGENT, "OMPI_MCA_orte_default_hostfile": HOSTS}


@pytest.mark.parametrize("name", ["mpirun", "mpiexec"])
@pytest.mark.parametrize(
    ("env", "agent", "hosts"),
    [
        (OPERATOR, AGENT, HOSTS),
        ({}, "", ""),
        ({**OPERATOR, "PRTE_MCA_plm_ssh_agent": "/own/agent"}, "/own/agent", HOSTS),
    ],
    ids=["the operator's", "none", "a member's own"],
)
def test_what_open_mpi_is_told(name: str, env: dict[str, str], agent: str, hosts: str, tmp_path: Path) -> None:
    called = tmp_path / "bin" / name
    called.parent.mkdir()
    names = ("plm_ssh_agent", "prte_default_hostfile", "oob_tcp_retry_delay", "oob_tcp_max_recon_attempts")
    told = ("$0 $*", *(f"${{PRTE_MCA_{one}:-}}" for one in names))
    called.write_text("\n".join(["#!/bin/sh", *(f'echo "{one}"' for one in told), "exit 7\n"]))
    called.chmod(0o755)
    script = tmp_path / name
    script.write_text(SCRIPT.read_text().replace("/usr/bin/", f"{called.parent}/"))
    script.chmod(0o755)
    done = subprocess.run([script, "-np", "2", "a b"], env=env, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout.splitlines() == [f"{called} -np 2 a b", agent, hosts, *(("1", "60") if env else ("", ""))]
