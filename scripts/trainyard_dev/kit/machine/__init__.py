"""What runs on the machine, with nothing but its Python: `python3 -m machine`."""
