"""Everything around a job: its code, packages, results, metrics and models, and the cleanup after it."""
