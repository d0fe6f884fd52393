"""Backup and restore for real: an object and a workspace's files are destroyed and come back as they were."""

import io

from trainyard_dev.e2e import cronjobs, store
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import STORAGE_CODE, VOLUMES, check
from trainyard_dev.e2e.recorder import require

KEY = f"{NAMESPACE}/backup-check/model"
NEWER = f"{NAMESPACE}/backup-check/newer"
FOLDER = "/workspace/backup-check"
BODY = bytes(range(256)) * 4096

WRITE = f"""
umask 007; rm -rf {FOLDER}; mkdir -p {FOLDER}/deep
head -c 3000000 /dev/urandom > {FOLDER}/deep/model.pt; chmod 640 {FOLDER}/deep/model.pt
echo old > {FOLDER}/newer; ln -s deep/model.pt {FOLDER}/latest
"""
LOOK = f"""
cd {FOLDER}; find . -printf '%p %y %m %U %G %l\\n' | sort; sha256sum deep/model.pt; cat newer
"""
DESTROY = f"rm -rf {FOLDER}/deep {FOLDER}/latest; sleep 1; echo new > {FOLDER}/newer"


def _in_workspace(context: Context, script: str) -> str:
    """Runs a script as the team, with its workspace mounted; returns its output."""
    pod = context.pod("backup-check", script, claims={"workspace": "/workspace"})
    phase, log = context.run_pod(pod)
    require(phase == "Succeeded", f"the pod with the workspace ended {phase}: {log[-300:]}")
    return log


def backup(context: Context) -> str:
    """Backs up an object and a workspace; returns the state of the workspace."""
    seen = ""
    with context.recorder.check("storage.backup", "buckets and workspaces are archived with checksums") as figures:
        with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as own:
            own.client.put_object("runs", KEY, io.BytesIO(BODY), len(BODY), "application/x-model", {"epoch": "3"})
            own.client.put_object("runs", NEWER, io.BytesIO(b"old"), 3)
        seen = _in_workspace(context, WRITE + LOOK)
        log = cronjobs.run(context, "trainyard-backup", timeout=300)
        figures["log"] = log.splitlines()[-8:]
        require(f"workspace-{NAMESPACE}: " in log and "bucket-runs: " in log, f"the backup is incomplete: {log[-400:]}")
        listed = cronjobs.run(context, "trainyard-restore")
        require("workspace-" in listed, f"the restore job does not list the backup: {listed[-300:]}")
    return seen


def restore(context: Context, seen: str) -> None:
    """Destroys both and restores them: same bytes, owners and modes. Newer files stay."""
    with context.recorder.check("storage.restore", "a restore brings back lost files and keeps newer files") as figures:
        require(seen, "no backup to restore")
        with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as own:
            own.client.remove_object("runs", KEY)
            own.client.put_object("runs", NEWER, io.BytesIO(b"new"), 3)
            _in_workspace(context, DESTROY)
            wish = {"RESTORE_FROM": "latest", "RESTORE_ONLY": f"bucket-runs,workspace-{NAMESPACE}"}
            figures["log"] = cronjobs.run(context, "trainyard-restore", wish, timeout=300).splitlines()[-8:]
            answer = own.client.get_object("runs", KEY)
            require(answer.read() == BODY, f"runs/{KEY} differs from the backup")
            require(answer.headers.get("x-amz-meta-epoch") == "3", f"runs/{KEY} lost its metadata")
            answer.close()
            require(own.read("runs", NEWER) == b"new", f"runs/{NEWER} was newer than the backup, but is lost")
        after = _in_workspace(context, LOOK)
        require(after.splitlines()[-1] == "new", "a file that was newer than the backup is lost")
        before = seen.splitlines()
        require(after.splitlines()[:-1] == before[:-1], f"the workspace was {before}, now it is {after.splitlines()}")
        figures["workspace"] = before[:-1]


@check("storage.backup", "storage.restore", locks={VOLUMES}, inputs=STORAGE_CODE)
def there_and_back(context: Context) -> None:
    """Backup and restore, one after the other."""
    restore(context, backup(context))
