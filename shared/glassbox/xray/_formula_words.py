"""Derivative formulas: what they keep of a call, and what their node is called (torchgen's load_derivatives.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..records import Formula

# What a formula may ask a tensor for without keeping it: the generator keeps the answer instead.
_FACTS = (
    r"zeros_like\({0}\)",
    r"TensorGeometry\({0}\)",
    r"to_args_(?:sizes|sizes_symint|scalartypes)\({0}\)",
    r"{0}(?:\.|->)(?:sym_sizes|sym_strides|sym_blocksize|options|scalar_type|layout|is_conj|dim|numel|sym_numel)\(\)",
    r"{0}\.sym_size\(-?\w+\)",
)
_FORWARD = {
    "auto_linear": "the function is linear, so the tangent of its result is the function of the tangent",
    "auto_element_wise": "the function works element by element with a real derivative, so the formula of the gradient "
    "serves, with the tangent in place of grad",
}
ENTRY_KEYS = ("name", "node", "dispatch", "output_differentiability")


def read_formulas(
    entry: Mapping[str, Any], arguments: Sequence[str], results: Sequence[str]
) -> tuple[tuple[Formula, ...], tuple[Formula, ...], tuple[str, ...]]:
    """(formulas of reverse mode, of forward mode, arguments without gradient) of an entry.

    arguments, results   names from the schema; a nameless result is "result", several are "result0", "result1", ...
    """
    backward: list[Formula] = []
    forward: list[Formula] = []
    constant: list[str] = []
    for key, formulas in entry.get("dispatch", {"Default": entry}).items():
        for names, formula in formulas.items():
            if names in ENTRY_KEYS:
                continue
            of, text = tuple(re.split(r"\s*,\s*", names)), " ".join(str(formula).split())
            if text.lower() == "non_differentiable":
                constant += [name for name in of if name not in constant]
            elif set(of) <= set(arguments):
                backward.append(_backward(of, text, key, arguments, results))
            else:
                forward.append(Formula(of, text, key=key, meaning=_FORWARD.get(text, "")))
    return tuple(backward), tuple(forward), tuple(constant)


def _backward(of: tuple[str, ...], text: str, key: str, arguments: Sequence[str], results: Sequence[str]) -> Formula:
    saved: list[str] = []
    facts: list[str] = []
    rest = text
    for name in dict.fromkeys((*arguments, *results)):
        for pattern in _FACTS:
            facts += dict.fromkeys(re.findall(pattern.format(rf"\b{name}"), rest))
            rest = re.sub(pattern.format(rf"\b{name}"), "_", rest)
        # As the generator does: a method of that name counts too, and the value is kept in vain.
        if re.search(rf"(?<!\w){name}(?!\w)", rest):
            saved.append(name)
    meaning = ""
    if "not_implemented" in text:
        meaning = "not written: backward raises, saying so"
    elif text in ("grad", "grad.clone()"):
        meaning = "the gradient of the result, as it is"
    elif text.startswith("grads[") or re.search(r"\bgrads\b", text):
        meaning = "grads are the gradients of the results, by number"
    return Formula(of, text, tuple(saved), tuple(facts), key, meaning)


def result_names(returns: Iterable[Any]) -> list[str]:
    """How formulas call an operator's results."""
    found = list(returns)
    if len(found) == 1:
        return ["result"] if not found[0].name else [found[0].name, "result"]
    names = [each.name or f"result{nr}" for nr, each in enumerate(found)]
    return list(dict.fromkeys([*names, *(f"result{nr}" for nr in range(len(found)))]))


def node_class(base: str) -> str:
    """The class of an operator's nodes, without its number: "add" -> "AddBackward"."""
    camel = "".join(part.title() for part in base.split("_"))
    return f"{camel}Backward".replace("ForwardBackward", "Backward")
