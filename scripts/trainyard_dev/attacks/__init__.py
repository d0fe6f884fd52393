"""Attacks on the platform, sent to a real API server: each has to be refused, by the guard that it names."""
