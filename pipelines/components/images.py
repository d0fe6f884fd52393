"""Images of the platform that pipelines use. Where a site has them in its own registry, change them here."""

PIPELINE = "site.invalid/trainyard/pipeline:0.4.0"  # steps that start and watch training jobs
TORCH = "site.invalid/trainyard/trainer-torch:0.4.0"  # PyTorch, MPI, numpy, S3; kfp, for steps of your own
TENSORFLOW = "site.invalid/trainyard/trainer-tensorflow:0.4.0"
