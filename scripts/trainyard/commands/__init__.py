"""The product's command line, a module for each group of commands; nothing imports these but the command line."""
