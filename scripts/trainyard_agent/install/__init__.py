"""Puts the platform on a cluster or takes it off: setup, CRDs, nodes, queues, teams, certificates, self-test."""
