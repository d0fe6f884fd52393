"""The report of an end-to-end run: what was checked, on what, how long it took, and what was not tested."""

from trainyard_dev.report.model import Check, Gpu, Picture, Run, Span, Verdict
from trainyard_dev.report.writer import write

__all__ = ["Check", "Gpu", "Picture", "Run", "Span", "Verdict", "write"]
