"""Rules that name the probable cause of a failure, most specific first.

A rule has a name and a question: a function that reads the collected data and yields sentences; the first is used.
Causes come before their effects: a full disk before the image that could not be unpacked, an image before the
gang that waits for it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainyard.chart.diagnose import cluster_rules, pod_rules
from trainyard.chart.diagnose.objects import Collected

Question = Callable[[Collected], Iterator[str]]


@dataclass(frozen=True)
class Rule:
    """A named rule."""

    name: str
    question: Question

    def ask(self, collected: Collected) -> str | None:
        """The rule's first sentence, or None if the rule does not apply."""
        return next(self.question(collected), None)


RULES: tuple[Rule, ...] = (
    Rule("api-down", cluster_rules.api_down),
    Rule("disk-pressure", cluster_rules.disk_pressure),
    Rule("memory-pressure", cluster_rules.memory_pressure),
    Rule("node-not-ready", cluster_rules.node_not_ready),
    Rule("evicted", pod_rules.evicted),
    Rule("out-of-memory", pod_rules.out_of_memory),
    Rule("webhook-silent", cluster_rules.webhook_silent),
    Rule("pod-security", cluster_rules.pod_security),
    Rule("quota", cluster_rules.quota),
    Rule("policy", cluster_rules.policy),
    Rule("image", pod_rules.image),
    Rule("bad-config", pod_rules.bad_config),
    Rule("mount", pod_rules.mount),
    Rule("sandbox", pod_rules.sandbox),
    Rule("device-admission", pod_rules.device_admission),
    Rule("hook-failed", pod_rules.hook_failed),
    Rule("crash-loop", pod_rules.crash_loop),
    Rule("no-gpus", cluster_rules.no_gpus),
    Rule("pod-failed", pod_rules.pod_failed),
    Rule("create-failed", cluster_rules.create_failed),
    Rule("claim-pending", cluster_rules.claim_pending),
    Rule("queue-closed", cluster_rules.queue_closed),
    Rule("unhealthy-gpus", cluster_rules.unhealthy_gpus),
    Rule("unschedulable", pod_rules.unschedulable),
    Rule("init-stuck", pod_rules.init_stuck),
    Rule("probe", pod_rules.probe),
    Rule("job-failed", cluster_rules.job_failed),
    Rule("accuracy", cluster_rules.accuracy),
)
