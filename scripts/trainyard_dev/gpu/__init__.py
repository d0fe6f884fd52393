"""GPUs of the test cluster: the machine's own, or pretended ones where it has none."""
