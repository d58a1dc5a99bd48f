"""The ledger: what was checked, what passed, what was left out and why."""

from collections import Counter
from dataclasses import dataclass, field

from .exclusions import excluded

# values        the elements of the results, of inputs that were written to, of gradients' absence
# layout        dtype, shape, strides, storage offset
# aliasing      whose storage a result lies over, whose view it is, the versions of the inputs
# in-place      the in-place form: its result, what it wrote, its version
# out           out= tensors of the right and wrong shape and dtype
# errors        mini raises exactly where PyTorch does, with the same exception type
# grad          first gradients
# gradgrad      second gradients
KINDS = ("values", "layout", "aliasing", "in-place", "out", "errors", "grad", "gradgrad")
MOST_MESSAGES = 3


@dataclass
class Ledger:
    """One entry's counts per kind of check, a few messages of failures per kind, what was left out by reason."""

    entry: str = ""
    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    messages: dict[str, list[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, problem: str, where: str) -> bool:
        """Count one check; `problem` is "" if it passed."""
        if not problem:
            self.passed[kind] += 1
            return True
        told = f"{problem} [{where}]"
        reason = excluded(self.entry, kind, told)
        if reason:
            self.left_out[f"{kind}: {reason}"] += 1
            return False
        self.failed[kind] += 1
        kept = self.messages.setdefault(kind, [])
        if len(kept) < MOST_MESSAGES and not any(each.startswith(problem[:60]) for each in kept):
            kept.append(told)
        return False

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] += 1

    def add(self, other: "Ledger") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.left_out += other.left_out
        for kind, messages in other.messages.items():
            kept = self.messages.setdefault(kind, [])
            kept += messages[: MOST_MESSAGES - len(kept)]
