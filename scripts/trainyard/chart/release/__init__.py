"""Management of an installed release: the summary before an upgrade, verdicts, the previous version, removal."""
