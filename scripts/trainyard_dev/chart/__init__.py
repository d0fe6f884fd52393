"""The chart: assembled from our own and upstream parts, packaged, rendered, measured."""
