"""One module for each framework, named as in `trainyard.yaml`: its `build` makes the job's spec."""
