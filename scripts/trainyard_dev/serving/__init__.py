"""The model server on this machine: an environment with what its image pins, small models, and how it is measured."""
