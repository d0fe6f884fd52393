"""One module a framework, called as in `trainyard.yaml`: its `build` makes the spec of the job."""
