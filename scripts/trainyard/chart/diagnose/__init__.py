"""Diagnosis of a cluster on which a run failed: data to keep, and the probable cause in one sentence."""

from trainyard.chart.diagnose.cause import probable_cause
from trainyard.chart.diagnose.collect import collect
from trainyard.chart.diagnose.objects import Collected

__all__ = ["Collected", "collect", "probable_cause"]
