"""What we hold, asked of databases of known vulnerabilities: Python pins, Go modules, Debian packages of images."""
