"""What to keep of a cluster on which a run failed, and the probable cause in one sentence."""

from trainyard.diagnose.cause import probable_cause
from trainyard.diagnose.collect import collect
from trainyard.diagnose.facts import Collected

__all__ = ["Collected", "collect", "probable_cause"]
