"""What was tried against 0.2.0 and is tried against this tree: attempts, who refuses them, and the page of both."""
