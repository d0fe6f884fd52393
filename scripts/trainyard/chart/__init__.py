"""The installed chart: what Helm renders, releases and what they leave, and the probable cause of a failure."""
