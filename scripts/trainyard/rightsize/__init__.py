"""Right sizes: comparison of requested and used resources, and proposals for better requests."""
