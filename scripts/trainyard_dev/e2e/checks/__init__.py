"""What is checked on the cluster, by subject."""
