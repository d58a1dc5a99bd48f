"""Calls of the mini-framework's operators: the keys of their arguments and of the thread, and the kernels that ran."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import mini
from ..mini.aten.core.dispatcher import OperatorHandle, Row, dispatcher
from ..mini.c10 import dispatch_key
from ..mini.c10.dispatch_key import BACKENDS, FUNCTIONALITIES, PER_BACKEND
from ..mini.c10.tensor_impl import TensorImpl
from ..mini.modes import dynamic_layer, python_dispatch
from ..records import KeyLayout, Onion
from ._calls import Brought, Surroundings, TopCall


class OfMini:
    """The mini-framework, as far as dispatch keys go: a Framework."""

    def layout(self) -> KeyLayout:
        return KeyLayout(BACKENDS, FUNCTIONALITIES, tuple(PER_BACKEND.items()), dispatch_key.ALIASES)

    def key_set(self, tensor: Any) -> int:
        return int(tensor._key_set)

    def local_sets(self) -> tuple[int, int]:
        included = mini._C._dispatch_tls_local_include_set().raw_repr()
        return included, mini._C._dispatch_tls_local_exclude_set().raw_repr()

    def surroundings(self) -> Surroundings:
        devices = {"AutocastCPU": "cpu", "AutocastPrivateUse1": "sim"}
        return Surroundings(
            tuple(type(mode).__name__ for mode in python_dispatch.current_modes()),
            tuple(("transform", level) for level in range(1, dynamic_layer.depth() + 1)),
            tuple(key for key, device in devices.items() if mini.is_autocast_enabled(device)),
            mini.is_inference_mode_enabled(),
            mini.is_grad_enabled(),
        )

    def table(self, name: str) -> dict[str, str]:
        lines = mini._C._dispatch_dump_table(name).splitlines()
        return {key: row for key, _, row in (line.partition(": ") for line in lines)}

    def refuse(self, fn: Any, where: str) -> None:
        """There is nothing that cannot be watched."""

    @contextmanager
    def watch(self, see: Callable[[TopCall], None], passed_over: bool = True) -> Iterator[None]:
        me = threading.get_ident()
        running: list[OperatorHandle] = []

        def watcher(op: OperatorHandle, row: Row, left: int, function: Callable[..., Any]) -> Callable[..., Any]:
            def watched(key_set: int, *arguments: Any) -> Any:
                if running or threading.get_ident() != me:
                    return function(key_set, *arguments)
                included, excluded = self.local_sets()
                brought = tuple(self._brought(op, arguments))
                see(TopCall(str(op.overload), op.name, brought, included, excluded, left, self.surroundings(), self))
                running.append(op)
                try:
                    return function(key_set, *arguments)
                finally:
                    running.pop()

            return watched

        registration = dispatcher.watch(watcher)
        try:
            yield
        finally:
            registration.remove()

    def hops(self, run: Callable[[], None]) -> Onion:
        with mini.record() as recorder:
            run()
        return recorder.hops

    def _brought(self, op: OperatorHandle, arguments: tuple[Any, ...]) -> Iterator[Brought]:
        for argument, value in zip(op.schema.arguments, arguments, strict=True):
            values = value if isinstance(value, list | tuple) else (value,)
            for nr, each in enumerate(values):
                if isinstance(each, TensorImpl):
                    name = argument.name if values is not value else f"{argument.name}[{nr}]"
                    yield Brought(name, type(each).__name__, each._key_set, getattr(each, "level", 0))
