"""Right sizes: what jobs used of what they asked for, and what to ask for instead."""
