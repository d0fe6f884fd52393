"""The checks on the cluster, by subject."""
