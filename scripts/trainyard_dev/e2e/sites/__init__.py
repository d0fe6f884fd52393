"""Sites, servers, machines and people that checks use on the run's cluster."""
