"""Generated code: functions made of text that can be read, stepped through, shown in tracebacks (PyTorch: torchgen).

What the dispatcher needs per operator (a call, an Autograd kernel, a method) follows from its schema, so it
is written by the module that knows the rule and compiled here once, at the first call: a program uses few of
all operators. The text is registered with linecache, so inspect.getsource and tracebacks show it as if it lay
in a file.
"""

import linecache
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...c10.dtype import int64


def compile_source(text: str, name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Runs `text`, whose file shall be called <glassbox.mini: name>, in `namespace` and returns the namespace."""
    filename = f"<glassbox.mini: {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace.setdefault("long", int64)
    exec(compile(text, filename, "exec"), namespace)
    return namespace


_STUB_NAME = "<glassbox.mini: first call>"
_STUB_TEXT = "def stub(*args, **kwargs):\n    return first_call(*args, **kwargs)\n"
_STUB = compile(_STUB_TEXT, _STUB_NAME, "exec").co_consts[0]
linecache.cache[_STUB_NAME] = (len(_STUB_TEXT), None, _STUB_TEXT.splitlines(keepends=True), _STUB_NAME)
_lock = threading.RLock()


def compile_later(
    entry: str, name: str, write: Callable[[], str], names: Callable[[], dict[str, Any]]
) -> Callable[..., Any]:
    """The function `entry` of the text that `write` gives, written and compiled when it is first called.

    names: gives the names that the text uses. The function object stays the same, so it may be kept from the start.
    """
    namespace: dict[str, Any] = {}
    function = FunctionType(_STUB, namespace, entry)
    function.__qualname__ = entry

    def complete() -> None:
        namespace.update(names())
        made = compile_source(write(), name, namespace)[entry]
        function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        function.__code__ = made.__code__
        namespace[entry] = function
        del namespace["first_call"], namespace["complete"]

    def first_call(*args: Any, **kwargs: Any) -> Any:
        ready(function)
        return function(*args, **kwargs)

    namespace.update(first_call=first_call, complete=complete)
    # Whose function it is, for those who ask.
    function.__module__ = __name__
    return function


def ready(function: Callable[..., Any]) -> Callable[..., Any]:
    """Has a function of compile_later compiled, if that is still to be done, so that its text can be read."""
    with _lock:
        complete = getattr(function, "__globals__", {}).get("complete")
        if complete is not None and function.__code__ is _STUB:
            complete()
    return function
