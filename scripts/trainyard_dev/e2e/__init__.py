"""`make e2e`: from an empty machine to trained models on GPUs, on a real cluster, with a report."""
