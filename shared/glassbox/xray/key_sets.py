"""Keys: the key set of a tensor or of a call, step by step, as named bits (c10/core/DispatchKeySet.h).

`keys(x)` shows what a tensor brings and what the thread adds and takes away; `keys(fn, *args)` what the first operator
call of fn(*args) brings, argument by argument, and which key wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..records import KeyLayout, KeySets, KeyStep
from ._calls import TopCall, framework_of, framework_of_call
from ._looking import is_tensor_type


def keys(what: Any, /, *args: Any, **kwargs: Any) -> KeySets:
    """The key set of a tensor, or of the first operator call that what(*args, **kwargs) makes.

    what   a tensor of torch or of the mini-framework; or a function, a module, an operator such as
           torch.ops.aten.add.Tensor, which is called once

    A tensor alone has no operator, so no fallthroughs are taken away, and the winner is only where most calls would go.
    TypeError for what is neither tensor nor callable, ValueError where the call reaches no operator. Whatever the
    function raises is raised.
    """
    if is_tensor_type(type(what)):
        if args or kwargs:
            raise TypeError("keys: a tensor is asked for alone; to ask for a call, give the function first.")
        return _of_tensor(what)
    if not callable(what):
        raise TypeError(f"keys: {type(what).__name__} is neither a tensor nor a function; give one of these.")
    calls: list[TopCall] = []
    watch_program("keys", what, args, kwargs, calls)
    return key_sets_of(calls[0], calls[0].framework.table(calls[0].name))


def watch_program(
    where: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], calls: list[TopCall]
) -> None:
    """Call fn once and append its operator calls to `calls`, those that were made before an exception too.

    ValueError where there are none, and for a compiled function.
    """
    # Calls of detach and alias cannot be watched everywhere; where one is asked for by name it is.
    passed_over = not any(name in str(getattr(fn, "__name__", fn)) for name in ("detach", "alias"))
    framework = framework_of_call(fn, args, kwargs)
    framework.refuse(fn, where)
    with framework.watch(calls.append, passed_over):
        fn(*args, **kwargs)
    if not calls:
        raise ValueError(
            f"{where}: the function called no operator that the dispatcher saw; give one that computes with tensors in "
            f"this thread (detach and alias are seen only where they are the function itself)."
        )


def _of_tensor(tensor: Any) -> KeySets:
    framework = framework_of(tensor)
    layout = framework.layout()
    included, excluded = framework.local_sets()
    brought = framework.key_set(tensor)
    steps = (
        KeyStep("argument", type(tensor).__name__, brought),
        KeyStep("included", "included", included),
        KeyStep("excluded", "excluded", excluded),
        KeyStep("effective", "effective", layout.remove(brought | included, excluded)),
    )
    return KeySets("", steps, layout)


def key_sets_of(call: TopCall, table: Mapping[str, str]) -> KeySets:
    """The sum of a call's key set, reckoned from what the arguments brought, the thread's sets and the table."""
    layout = call.framework.layout()
    united = 0
    for each in call.brought:
        united |= each.bits
    passed = fallthroughs(layout, table, united)
    left = layout.remove(layout.remove(united | call.included, call.excluded), passed)
    arguments = tuple(KeyStep("argument", each.name, each.bits) for each in call.brought)
    rest = (
        KeyStep("union", "union", united),
        KeyStep("included", "included", call.included),
        KeyStep("excluded", "excluded", call.excluded),
        KeyStep("fallthrough", "fallthrough", passed),
        KeyStep("effective", "effective", left),
    )
    return KeySets(call.op, arguments + rest, layout)


def fallthroughs(layout: KeyLayout, table: Mapping[str, str], united: int) -> int:
    """The functionalities whose row holds a fallthrough, for a call whose arguments bring these keys.

    Of a functionality with one row per backend, that of the arguments' highest backend counts, and the first backend's
    where there is none (DispatchKeyExtractor.h: nonFallthroughKeysPerBackend_).
    """
    backend = (layout.backends_of(united) or layout.backends[:1])[-1]
    found = 0
    for functionality in layout.functionalities:
        if table.get(layout.key(functionality, backend), "").startswith("fallthrough"):
            found |= layout.bits(functionality)
    return found
