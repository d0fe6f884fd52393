"""Measures scheduling: real schedulers on a real API server, nodes as objects, pods and gangs from published traces."""
