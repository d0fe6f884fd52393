"""The part of CEL (Common Expression Language, with Kubernetes' additions) in which the admission policies are written.

    program = cel.compile("object.spec.?queue.orValue('') in ['a', 'b']")
    program({"object": cel.place({"spec": {"queue": "a"}})})     # True

What `place` has marked keeps its path through selection and concatenation, also where a field is missing, so that
`cel.path(value)` tells which part of the object a message speaks of. An evaluation that fails as it would in the API
server is a `CelError`, as is a function that no rule needs, which is refused by name.

Nothing checks types or names before the evaluation, so `true || 1` is true here and refused there; for the rest,
tests/policies/cel_corpus.yaml holds each value against a real API server's.
"""

from trainyard.policy.cel.parse import compile
from trainyard.policy.cel.quantity import amount, number
from trainyard.policy.cel.values import CelError, at, path, place

__all__ = ["CelError", "amount", "at", "compile", "number", "path", "place"]
