"""The check that runs an example on the cluster, or the reason why none does."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from trainyard.errors import UsageError
from trainyard_dev.corpus import picked
from trainyard_dev.corpus.picked import ARGO, OPERATOR, VOLCANO

MORE = "three of a kind are run"
# Files that are not run though both accept them: patterns in the group's folder, and why. The first match counts.
LEFT_OUT: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (OPERATOR, ("pytorch/cpu-demo/*", "pytorch/elastic/echo/*", "pytorch/mnist/v1/*"), f"{MORE}; `mpi` and NCCL ask "
     "for a torch built with them and for GPUs that compute"),
    (OPERATOR, ("pytorch/deepspeed-demo/*", "pytorch/elastic/imagenet/*"), "DeepSpeed; four cores a pod and a data set "
     "of their own"),
    (OPERATOR, ("tensorflow/mnist_with_summaries/*",), "its volume is a PersistentVolume, which members can't create"),
    (OPERATOR, ("mpi/tensorflow-mnist-elastic.yaml",), "`horovodrun` with host discovery, which no image of the "
     "platform has"),
    (OPERATOR, ("xgboost/lightgbm-dist/*",), "no image of the platform has LightGBM"),
    (OPERATOR, ("xgboost/smoke-dist/xgboostjob_v1alpha1_*",), "fields that the kind doesn't have: `kubectl` refuses it "
     "as it is"),
    (OPERATOR, ("xgboost/xgboost-dist/*", "xgboost/xgboostjob.yaml"), "a model that an earlier job left on a claim "
     "with a PersistentVolume, or in a store elsewhere; `xgboostjob.yaml` is the same job again"),
    (VOLCANO, ("MindSpore-example/*", "integrations/mpi/*", "kubecon-2019-china/*", "task-start-dependency/mpi.yaml"),
     "ranks reached by `sshd` as root, more cores than the test cluster has, or a queue of their own"),
    (VOLCANO, ("job.yaml", "job-plugin.yaml", "hierarchical-jobs/*", "task-start-dependency/job.yaml"), "nginx, which "
     "never ends"),
    (VOLCANO, ("integrations/paddlepaddle/*", "integrations/ray/*"), "folders of the host, 30Gi; a cluster that never "
     "ends"),
    (VOLCANO, ("invalid_jobs/*",), "made to be refused"),
    (VOLCANO, ("integrations/argo/*",), MORE),
    (ARGO, ("*",), MORE),
)  # fmt: skip


def run(group: str, file: str, refused: Sequence[str] = (), fails: Sequence[str] = ()) -> str:
    """The check that runs it, or why none does.

    Args:
        refused: codes for which it stays refused after the hints.
        fails: codes of problems known to make it fail when it runs.

    Raises:
        UsageError: it could be run, but no reason is listed why it isn't.
    """
    if one := next((one for one in picked.PICKED if one.group == group and file in one.files), None):
        return f"`arrivals.upstream-{one.kind}`"
    if refused:
        return f"stays refused: {', '.join(refused)}"
    if fails:
        return f"would fail: {', '.join(fails)}"
    found = next(_reasons(group, file), None)
    if found is None:
        raise UsageError(
            f"no reason states why {group}/{file} is not run", hint="add it to LEFT_OUT in scripts/trainyard_dev/corpus"
        )
    return found


def _reasons(group: str, file: str) -> Iterator[str]:
    for of, patterns, why in LEFT_OUT:
        if of == group and any(fnmatch(file, pattern) for pattern in patterns):
            yield why
