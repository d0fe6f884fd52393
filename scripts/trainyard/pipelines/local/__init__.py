"""Pipelines on this machine, without a cluster: kfp's local runner, with buckets as folders and ranks as processes."""
