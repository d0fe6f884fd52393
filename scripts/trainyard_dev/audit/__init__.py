"""Known vulnerabilities in what we ship, from databases: Python pins, Go modules, Debian packages of images."""
