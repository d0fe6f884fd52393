"""Data sets of teams, and their locations by name.

digits              the team's own        s3://datasets/<team>/digits
shared/mnist        read by all teams     s3://datasets/shared/mnist, brought by the platform engineer
raw-data/scans      read by all teams     s3://raw-data/scans
workspace/notes     the team's files      claim workspace, folder notes
"""

from trainyard.data.places import Place, place, roots
from trainyard.data.sets import Set, opened

__all__ = ["Place", "Set", "opened", "place", "roots"]
