"""Copies of pins and generated files agree with what they are made from."""
