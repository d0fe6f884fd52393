"""The command line of a checkout: the product's commands and the laboratory's."""

from trainyard import cli as product

COMMANDS = {
    "attacks": "trainyard_dev.attacks.cli",
    "audit": "trainyard_dev.audit.cli",
    "bench": "trainyard_dev.bench.cli",
    "chart": "trainyard_dev.chart.cli",
    "cluster": "trainyard_dev.cluster.cli",
    "corpus": "trainyard_dev.corpus.cli",
    "doctor": "trainyard_dev.doctor.cli",
    "e2e": "trainyard_dev.e2e.cli",
    "images": "trainyard_dev.mirror.cli",
    "kit": "trainyard_dev.kit.cli",
    "matrix": "trainyard_dev.matrix.cli",
    "policy": "trainyard_dev.policy.cli",
    "publish": "trainyard_dev.publish",
    "release": "trainyard_dev.release.cli",
    "tools": "trainyard_dev.tools.cli",
    "verify": "trainyard_dev.verify.cli",
    "versions": "trainyard_dev.sync.cli",
}

trainyard = product.trainyard
trainyard.modules.update(COMMANDS)


def main() -> None:
    """Entry point of `bin/trainyard`."""
    product.main()
