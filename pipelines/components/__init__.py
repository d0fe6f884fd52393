"""Training as steps of kfp pipelines, one function for each kind of job. Copy this folder beside your pipeline.

    from components import pytorch_job

    @dsl.pipeline
    def mine(lr: float = 0.1):
        data = prepare()
        trained = pytorch_job(
            command=["python3", "train.py", "--data={data}", "--out={out}"],
            arguments=f"--lr={lr}",
            image="…", nodes=2, gpus=1, data=data.output,
        )
        evaluate(model=trained.outputs["model"])

In words of the command `{data}` is where the input artifact is, `{out}` where results go, `{checkpoints}` where
checkpoints go (all of them readable by every rank), `{job}` the job's name. What lies at `{out}` when the job has
succeeded becomes the artifact `model`, and numbers of its `metrics.json` become `metrics`.
"""

from components.objects import create_object
from components.serving import gate_model, register_model, serve_model
from components.store import with_store
from components.training import jax_job, mpi_job, paddle_job, pytorch_job, tf_job, volcano_job, xgboost_job

__all__ = [
    "create_object",
    "gate_model",
    "jax_job",
    "mpi_job",
    "paddle_job",
    "pytorch_job",
    "register_model",
    "serve_model",
    "tf_job",
    "volcano_job",
    "with_store",
    "xgboost_job",
]
