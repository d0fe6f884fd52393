"""Images of the platform that pipelines use. Where a site has them in its own registry, change them here."""

PIPELINE = "docker.io/trainyard/pipeline:0.4.0"  # steps that start and watch training jobs
TORCH = "docker.io/trainyard/trainer-torch:0.4.0"  # PyTorch, MPI, numpy, S3; kfp, for steps of your own
TENSORFLOW = "docker.io/trainyard/trainer-tensorflow:0.4.0"
