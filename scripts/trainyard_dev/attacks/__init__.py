"""Attempts on the platform's borders, put to a real API server: each has to be refused, by the guard that it names."""
