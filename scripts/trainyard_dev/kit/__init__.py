"""The kit: parts that turn a bare Linux machine into a cluster of one node, offline."""
