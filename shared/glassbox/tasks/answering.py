"""The kernel's side of a grade: take the calls for one task, run the learner's function on them, hand the
answers over.

This module, `building`, `plain` and `unplug` are all of glassbox that a grading kernel holds. Nothing here
knows a right answer or a seed, and nothing here decides anything: a judge outside the kernel compares.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .building import afterwards, built
from .plain import NotPlainError, freeze, plain
from .unplug import trial, unplugged

MIME = "application/vnd.glassbox.answers+json"
PRINTED = 2000
MEMORY = 2 << 30

_orders: dict[str, Any] | None = None


def arm(orders: str) -> None:
    """Takes the orders for the next check, JSON: {"v": 1, "nonce": str, "seconds": float, "groups": [[case,
    ...], ...]}; where cases are built, also the names to "build" and what is "unplugged" meanwhile.
    """
    global _orders
    _orders = json.loads(orders)


def check(task: str, function: Callable[..., Any]) -> None:
    """Answers the calls that this cell was armed with, once, one message a group. Shows nothing, scores
    nothing.
    """
    global _orders
    orders, _orders = _orders, None
    if orders is None:
        print(f"{task}: nothing was asked here; only the check cell of a lab is.")
        return
    names = orders.get("build", ())
    # All is built before the function runs, so that it meets programs and not their texts.
    groups = [tuple(built(names, call) for call in freeze(group)) for group in orders.pop("groups")]
    for number, calls in enumerate(groups):
        with unplugged(function, orders.get("unplugged", ())):
            answers, printed = ask(function, calls, orders["seconds"], names)
        _emit({"v": 1, "nonce": orders["nonce"], "group": number, "answers": answers})
        if printed:
            print(printed)


def ask(
    function: Callable[..., Any], calls: tuple[Any, ...], seconds: float, names: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], str]:
    """Runs the calls in a forked child, killed after `seconds`; returns one answer a call and what was
    printed.

    An answer is {"value": plain} or {"raised": name, "message": str} or {"notplain": str} or {"timeout":
    true} or {"died": true} or {"skipped": true}: after an overrun or a death the rest of the group is
    skipped.
    """
    if not hasattr(os, "fork"):
        lines = io.StringIO()
        _answer_all(function, calls, lines.write, names)
        return _collect(lines.getvalue(), len(calls), "died")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(function, calls, write, names)
    os.close(write)
    with contextlib.suppress(OSError):  # the child does so too; whoever comes first, it is done
        os.setpgid(child, child)
    text, ended = _read_until(read, time.monotonic() + seconds)
    os.close(read)
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return _collect(text, len(calls), "died" if ended else "timeout")


def _child(function: Callable[..., Any], calls: tuple[Any, ...], write: int, names: Sequence[str]) -> None:
    try:
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _answer_all(function, calls, lambda line: _write_all(write, line.encode()), names)
    finally:
        os._exit(0)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _answer_all(
    function: Callable[..., Any], calls: tuple[Any, ...], send: Callable[[str], Any], names: Sequence[str]
) -> None:
    with quiet() as printed:
        for call in calls:
            try:
                given = answer(function, call, names)
            except KeyboardInterrupt as error:  # no keyboard here: the function's own doing
                given = {"raised": type(error).__name__, "message": ""}
            send(json.dumps(given) + "\n")
    if printed.getvalue():
        send(json.dumps({"printed": printed.getvalue()[:PRINTED]}) + "\n")


def answer(function: Callable[..., Any], call: tuple[Any, ...], names: Sequence[str] = ()) -> dict[str, Any]:
    """One call's answer, `names` being what was built for it. Raising is an answer like any other, leaving too; only
    an interrupt is passed on.
    """
    try:
        after = afterwards(names, call)
        with trial():
            value = function(*call)
            return {"value": plain(value if after is None else (value, after()))}
    except NotPlainError as error:
        return {"notplain": str(error)[:PRINTED]}
    except KeyboardInterrupt:
        raise  # in a notebook it comes from the keyboard and means the whole check
    except BaseException as error:  # noqa: BLE001
        with contextlib.suppress(Exception):
            return {"raised": type(error).__name__, "message": str(error)[:PRINTED]}
        return {"raised": type(error).__name__, "message": ""}


class _Bounded(io.StringIO):
    """A text buffer that forgets what comes after its first characters, so that printing costs no memory."""

    def write(self, text: str) -> int:
        if self.tell() < PRINTED:
            super().write(text[:PRINTED])
        return len(text)


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Collects both streams: nbgrader takes stderr for a failure, and a warning must cost nothing."""
    buffer = _Bounded()
    with contextlib.redirect_stdout(buffer), contextlib.redirect_stderr(buffer):
        yield buffer


def _read_until(read: int, deadline: float) -> tuple[str, bool]:
    """Reads to the end or to the deadline; returns the text and whether the end was reached."""
    chunks: list[bytes] = []
    size = 0
    while size < 1 << 22:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            return b"".join(chunks).decode(errors="replace"), False
        chunk = os.read(read, 1 << 16)
        if not chunk:
            return b"".join(chunks).decode(errors="replace"), True
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks).decode(errors="replace"), True


def _collect(text: str, count: int, ending: str) -> tuple[list[dict[str, Any]], str]:
    answers: list[dict[str, Any]] = []
    printed = ""
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and "printed" in record:
            printed = str(record["printed"])[:PRINTED]
        elif len(answers) < count:
            answers.append(record if isinstance(record, dict) else {"died": True})
    if len(answers) < count:
        answers.append({ending: True})
    return answers + [{"skipped": True}] * (count - len(answers)), printed


def _emit(record: dict[str, Any]) -> None:
    from IPython.display import publish_display_data

    sys.stdout.flush()
    publish_display_data({MIME: record, "text/plain": ""})
