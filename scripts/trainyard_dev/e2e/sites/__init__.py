"""What stands on the run's cluster for the checks: sites, servers, machines and people that they play."""
