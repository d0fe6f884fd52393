"""What jobs ask for and what they use: GPUs that are free or held, and the amounts that Prometheus measured."""
