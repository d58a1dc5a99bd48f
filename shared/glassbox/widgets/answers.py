"""Answers: does what a reader wrote say the same as what an expression gave? (PyTorch has no part for it.)

Nothing that a reader writes is executed: it is read with `ast.literal_eval` or compared as text.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

_WRAPPED = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?(?:Size|tensor|tuple|list)\((.*)\)$", re.DOTALL)
_WORDS = {"true": "True", "false": "False", "none": "None"}
# numbers with nothing but spaces between them, with or without one pair of brackets
_SPACED = re.compile(r"^([(\[{]?)\s*([-+.\w]+(?:\s+[-+.\w]+)+)\s*([)\]}]?)$")


def same_answer(given: str, answer: Any) -> bool:
    """True if the text says the value: by value where it is a literal, else by text without its white space.

    A torch.Size equals the tuple, a list equals the tuple, a tensor equals its numbers; True is not 1; floats
    agree to four digits, which is what PyTorch prints. Commas and brackets may be left out; where the value is a
    set, the order and the kind of brackets do not matter either.
    """
    given = given.strip()
    if _bare(given) in {_bare(t) for t in _spellings(answer)}:
        return True
    wrapped = _WRAPPED.match(given)
    for source in (given, wrapped.group(1) if wrapped else "", _SPACED.sub(_with_commas, given)):
        literal = _WORDS.get(source.lower(), source)
        try:
            value = ast.literal_eval(literal)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if _equal(_plain(value), _plain(answer)):
            return True
    return False


def _spellings(answer: Any) -> set[str]:
    """The texts that name a value which is no literal: a dtype or a type with or without its package, a
    string, a repr.
    """
    if isinstance(answer, str):
        return {answer, repr(answer)}
    full = str(answer)
    names = {full, repr(answer)}
    if isinstance(answer, type):
        names |= {answer.__name__, answer.__qualname__, f"{answer.__module__}.{answer.__qualname__}"}
    if re.fullmatch(r"(torch|mini)\.\w+", full):
        names.add(full.split(".", 1)[1])
    return names


def _with_commas(spaced: re.Match[str]) -> str:
    opening, parts, closing = spaced.groups()
    return f"{opening}{', '.join(parts.split())}{closing}"


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _plain(value: Any) -> Any:
    """Numbers, strings, None and tuples; tensors and arrays by what they hold."""
    if hasattr(value, "tolist") and not isinstance(value, (list, tuple)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in value)
    return value


def _equal(a: Any, b: Any) -> bool:
    """Whether what was given says the answer `b`."""
    if isinstance(b, (set, frozenset)):
        given = a if isinstance(a, (tuple, set)) else (a,)
        return all(any(_equal(x, y) for y in b) for x in given) and all(any(_equal(x, y) for x in given) for y in b)
    if isinstance(a, tuple) or isinstance(b, tuple):
        return (
            isinstance(a, tuple)
            and isinstance(b, tuple)
            and len(a) == len(b)
            and all(_equal(x, y) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
        return numbers and math.isclose(a, b, rel_tol=5e-4)
    return type(a) is type(b) and bool(a == b)
