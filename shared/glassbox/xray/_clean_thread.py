"""A clean thread: run something where nothing of the caller is switched on (c10/core/impl/LocalDispatchKeySet.h).

Key sets, grad mode, inference mode, autocast, dispatch modes and transforms belong to a thread in PyTorch; the
mini-framework keeps its own in context variables, which a new thread begins without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_clean_thread(make: Callable[[], T]) -> T:
    """What make() gives in a new thread; whatever it raises is raised here."""
    made: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            made.append(make())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]
