"""The subset of CEL (Common Expression Language, with Kubernetes' additions) that the admission policies use.

    program = cel.compile("object.spec.?queue.orValue('') in ['a', 'b']")
    program({"object": cel.place({"spec": {"queue": "a"}})})     # True

A value marked by `place` keeps its path through selection and concatenation, even if a field is missing, so that
`cel.path(value)` tells which part of the object a message is about. An evaluation that would fail in the API
server raises `CelError`, and so does a function that no rule needs, which is named in the error.

Types and names are not checked before the evaluation, so `true || 1` is true here and rejected there; otherwise
tests/policies/cel_corpus.yaml compares each value with a real API server's.
"""

from trainyard.policy.cel.parse import compile
from trainyard.policy.cel.quantity import amount, number
from trainyard.policy.cel.values import CelError, at, path, place

__all__ = ["CelError", "amount", "at", "compile", "number", "path", "place"]
