"""Rules, dashboards and queries of the chart `monitoring`: read, made, and compared with existing metrics."""
