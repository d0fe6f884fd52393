"""`trainyard versions sync`: writes every copy of a pin that `trainyard verify` compares and that can be written."""
