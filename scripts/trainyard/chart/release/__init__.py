"""What happens to an installed release: the summary before an upgrade, verdicts, the previous version, removal."""
