"""Plain data: what may cross between a learner's function and the judge, and when two of them are the same.

Only numbers, strings, None and (nested) sequences and string-keyed mappings cross. A tuple and a list are the
same thing here; 1, 1.0 and True are three different things.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

MAX_ITEMS = 4096
MAX_DEPTH = 16
MAX_BITS = 256
MAX_TEXT = 2000


class NotPlainError(ValueError):
    """A value is not plain data, or too large; the message says what it is and what to return instead."""


def plain(value: object) -> Any:
    """Returns `value` as JSON-ready data: bool, int, float, str, None, list or dict of these.

    Tuples become lists; NumPy and PyTorch integers, sizes and arrays become Python ones (through `__index__`
    and `tolist`); NaN and the infinities become `{"float": "nan"}` and so on. Raises NotPlainError for
    anything else, and above 4,096 items, depth 16, 256-bit integers or 2,000 characters.
    """
    budget = [MAX_ITEMS]
    return _plain(value, 0, budget)


def _plain(value: object, depth: int, budget: list[int]) -> Any:
    if depth > MAX_DEPTH:
        raise NotPlainError(f"the value is nested more than {MAX_DEPTH} deep")
    budget[0] -= 1
    if budget[0] < 0:
        raise NotPlainError(f"the value has more than {MAX_ITEMS:,} items")
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return _whole(int(value))
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise NotPlainError(f"the text has {len(value):,} characters; {MAX_TEXT:,} are the limit")
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1, budget) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotPlainError("a dictionary needs strings as keys here")
        return {"dict": [[str(key), _plain(item, depth + 1, budget)] for key, item in sorted(value.items())]}
    if hasattr(type(value), "tolist"):
        return _plain(value.tolist(), depth + 1, budget)  # type: ignore[attr-defined]
    if hasattr(type(value), "__index__"):
        return _whole(operator.index(value))  # type: ignore[arg-type]
    raise NotPlainError(
        f"the value is of type {type(value).__name__}; return numbers, strings, None, tuples or lists"
    )


def _whole(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise NotPlainError(f"the integer has {value.bit_length():,} bits; {MAX_BITS} are the limit")
    return value


def received(value: Any) -> Any:
    """Returns plain data that came over a channel, if it is what `plain` gives; NotPlainError otherwise.

    Text is brought into a form that can be written to a file: halves of surrogate pairs become "?".
    """
    return _received(value, 0, [MAX_ITEMS])


def _received(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        raise NotPlainError("the value is nested too deep or has too many items")
    if isinstance(value, list):
        return [_received(item, depth + 1, budget) for item in value]
    if isinstance(value, dict):
        ((kind, inside),) = value.items() if len(value) == 1 else [("", None)]
        if kind == "float" and inside in ("nan", "inf", "-inf"):
            return {"float": inside}
        if kind == "dict" and isinstance(inside, list):
            return {"dict": _received(inside, depth + 1, budget)}
    elif isinstance(value, str):
        return writable(value[:MAX_TEXT])
    elif value is None or isinstance(value, bool):
        return value
    elif isinstance(value, int):
        return _whole(value)
    elif isinstance(value, float) and math.isfinite(value):
        return value
    raise NotPlainError("what came is not plain data")


def writable(text: str) -> str:
    """Returns text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def freeze(value: Any) -> Any:
    """Returns plain data with every list as a tuple, the form in which a learner's function receives it."""
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def same(left: Any, right: Any) -> bool:
    """True where two pieces of plain data are equal in value and in kind: 1, 1.0 and True differ, NaN equals
    NaN.
    """
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return isinstance(left, bool | int | float | str | type(None)) and left == right


def show(value: Any, limit: int = 160) -> str:
    """Returns plain data as a learner would write it: sequences as tuples, cut to `limit` characters."""
    text = repr(freeze(value))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
