"""Short specs to what the platform takes, on standard output: jobs, queues, teams, pipelines."""
