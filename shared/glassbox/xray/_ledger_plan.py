"""What a cost ledger times, and which difference is which layer (aten/src/ATen/core/dispatch/Dispatcher.h).

A plan is data: samples by name, and layers as sums and differences of them. Calls that do not work (an operator without
out=, integers that can have no gradient) are left out, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from ._looking import in_short
from ._measuring import Sample
from ._timed_calls import TimedCall
from ._torch_internals.access import TorchInternalsError

# As `calling`, with the device's wait filled in.
Sampled = Callable[..., Sample]

PLAIN, GRAD, NO_GRAD, INFERENCE = "plain", "requires_grad", "no_grad", "inference_mode"

MODES: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    GRAD: ("floating point arguments require grad, and a node is recorded", nullcontext),
    PLAIN: ("no argument requires grad", nullcontext),
    NO_GRAD: ("arguments require grad, inside torch.no_grad()", torch.no_grad),
    INFERENCE: ("arguments require grad, inside torch.inference_mode()", torch.inference_mode),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A layer before it is measured: samples to add (+1) and to take away (-1)."""

    name: str
    definition: str
    terms: tuple[tuple[str, int], ...]
    stations: str = ""


@dataclass(slots=True)
class Plan:
    """What to time, by name, and what to make of the times.

    curves         mode -> (definition, [(size, sample)])
    alternatives   (name, definition, sample)
    """

    call: TimedCall
    sizes: tuple[int, ...]
    samples: dict[str, Sample] = field(default_factory=dict)
    layers: list[Difference] = field(default_factory=list)
    curves: dict[str, tuple[str, list[tuple[int, str]]]] = field(default_factory=dict)
    alternatives: list[tuple[str, str, str]] = field(default_factory=list)
    hops: list[Difference] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def whole(self) -> str:
        """The sample of the full call at the smallest size."""
        return next(iter(self.curves.values()))[1][0][1]

    def add(self, name: str, sample: Sample, label: str = "") -> bool:
        """Take a sample in if it works; else say why not, under its label if it has one."""
        try:
            sample(1, time.perf_counter_ns)
        except TorchInternalsError:
            raise
        except Exception as error:
            if label:
                self.left_out.append(f"{label} ({in_short(error)})")
            return False
        self.samples[name] = sample
        return True
