"""The platform contract as Python: the teams, queues, pools, classes, buckets, images and rules of a site.

from trainyard import contract

found = contract.load(Path("values.yaml"))   # values, the rendered chart, or its ConfigMap
found = contract.live(access.connect())      # ConfigMap trainyard-contract of the cluster
found = contract.find(file, kube)            # file, else $TRAINYARD_CONTRACT, else live, else defaults

found.team("vision").queues                  # an unknown team raises UsageError, which lists the teams
found.source                                 # human-readable source of the contract
"""

from trainyard.contract.find import CONFIG_MAP, VARIABLE, WHEELS, defaults, find, live, load, of_objects, system
from trainyard.contract.model import Bucket, Contract, Pool, Queue, Team

__all__ = [
    "CONFIG_MAP",
    "VARIABLE",
    "WHEELS",
    "Bucket",
    "Contract",
    "Pool",
    "Queue",
    "Team",
    "defaults",
    "find",
    "live",
    "load",
    "of_objects",
    "system",
]
