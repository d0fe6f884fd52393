"""Rules, dashboards and queries of the chart `monitoring`: read, made, and held against what there is."""
