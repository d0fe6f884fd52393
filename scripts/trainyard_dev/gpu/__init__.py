"""GPUs of the test cluster: the machine's own, or mock ones where it has none."""
