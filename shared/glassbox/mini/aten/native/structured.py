"""Structured kernels: one computation in the forms an op has (PyTorch: torchgen's structured kernels).

Of an op that exists as add, add_ and add.out, native_functions.yaml gives the kernel to add.out alone
(`structured: True`) and lets the others name it (`structured_delegate: add.out`).
"""

from collections.abc import Callable
from typing import Any


class Structured:
    """The three forms of one kernel; each takes the key set first and then the schema's arguments in order.

    functional(ks, *args) returns a fresh tensor (or a tuple of them), inplace(ks, self, ...) writes into self and
    returns it, out(ks, *args, *outs) writes into the last argument(s) and returns them. None: no such form.
    """

    __slots__ = ("name", "functional", "inplace", "out")

    def __init__(
        self,
        name: str,
        functional: Callable[..., Any],
        inplace: Callable[..., Any] | None = None,
        out: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.functional = functional
        self.inplace = inplace
        self.out = out
