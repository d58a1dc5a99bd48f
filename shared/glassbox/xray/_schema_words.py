"""Schemas in words: what the parts of a func line say (aten/src/ATen/native/README.md, torchgen/model.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..records.yaml_entry import SchemaArgument

_ARGUMENT = re.compile(
    r"(?P<base>\w+)(?:\((?P<annotation>[^)]*)\))?(?P<rest>[\[\]?\w]*)(?:\s+(?P<name>\w+))?(?:=(?P<default>.*))?"
)
_TYPES = {
    "Tensor": "a tensor",
    "Scalar": "a Python number of any type",
    "SymInt": "an int that may stay a symbol while a program is traced",
    "int": "an int",
    "float": "a float",
    "bool": "a bool",
    "str": "a string",
    "ScalarType": "a dtype",
    "Layout": "a layout",
    "Device": "a device",
    "MemoryFormat": "a memory format",
    "Generator": "a random number generator",
    "Dimname": "a dimension's name",
    "Storage": "a storage",
    "Stream": "a stream",
    "QScheme": "a quantization scheme",
    "DeviceIndex": "a device's number",
}


def split_schema(schema: str) -> tuple[str, tuple[SchemaArgument, ...], tuple[SchemaArgument, ...]]:
    """A func line as (name with overload, arguments, results)."""
    name, _, rest = schema.partition("(")
    inside, end = _bracketed("(" + rest)
    returned = rest[end - 1 :].partition("->")[2].strip()
    arguments: list[SchemaArgument] = []
    keyword = False
    for part in _split(inside):
        if part == "*":
            keyword = True
        else:
            arguments.append(_argument(part, keyword, result=False))
    parts = _split(_bracketed(returned)[0]) if returned.startswith("(") else _split(returned)
    return name.strip(), tuple(arguments), tuple(_argument(part, False, result=True) for part in parts)


def _argument(text: str, keyword: bool, result: bool) -> SchemaArgument:
    found = _ARGUMENT.fullmatch(text.strip())
    if found is None:
        return SchemaArgument(text.strip(), "", "", None, keyword)
    base, annotation, rest = found["base"], found["annotation"] or "", found["rest"] or ""
    meaning = "; ".join([_type_words(base, rest), *_annotation_words(annotation, result)])
    return SchemaArgument(found["name"] or "", base + rest, annotation, found["default"], keyword, meaning)


def _type_words(base: str, rest: str) -> str:
    words = _TYPES.get(base, f"a {base}")
    listed = re.search(r"\[(\d*)\]", rest)
    if listed:
        inner = words.partition(" ")[2]
        words = f"a list of {inner}s" if base in ("Tensor", "int", "bool", "float") else f"a list, each {words}"
        if listed[1]:
            words += f" ({listed[1]} of them; one alone stands for all)"
    return words + (", or None" if rest.endswith("?") else "")


def _annotation_words(annotation: str, result: bool) -> Iterator[str]:
    """What "(a)", "(a!)" and "(a -> *)" promise."""
    letter = annotation[:1]
    if not annotation:
        return
    if "!" in annotation:
        yield "the argument itself, written to" if result else f"written to (marked {letter})"
    elif "*" in annotation:
        yield f"views of it may be in the results (set {letter})"
    elif result:
        yield f"a view of the argument that is marked {letter} too"
    else:
        yield f"the result shares its memory (set {letter})"


def _bracketed(text: str) -> tuple[str, int]:
    """What is in the brackets that the text begins with, and where they end."""
    depth = 0
    for nr, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:nr], nr + 1
    return text[1:], len(text)


def _split(text: str) -> list[str]:
    """Parts between the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for nr, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:nr].strip())
            start = nr + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]
