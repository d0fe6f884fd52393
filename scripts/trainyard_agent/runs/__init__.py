"""What goes with a job: its code, packages, results, metrics and models, and what remains of it."""
