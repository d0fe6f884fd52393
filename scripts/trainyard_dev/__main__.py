"""`python -m trainyard_dev`: the command line of a checkout."""

from trainyard_dev.cli import main

main()
