"""Nested tuples, lists and dicts taken apart into leaves and put together again (PyTorch: torch/utils/_pytree.py)."""

from collections.abc import Callable
from typing import Any


def is_node(tree: Any) -> bool:
    """Whether it is taken apart; anything else, None too, is a leaf."""
    return type(tree) in (tuple, list, dict) or isinstance(tree, tuple) and hasattr(tree, "_fields")


def children(tree: Any) -> list[Any]:
    """What a node holds, in order."""
    return list(tree.values()) if isinstance(tree, dict) else list(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves from left to right."""
    return [leaf for child in children(tree) for leaf in leaves(child)] if is_node(tree) else [tree]


def rebuilt(tree: Any, parts: list[Any]) -> Any:
    """A node of the same kind as `tree` over other children."""
    if isinstance(tree, dict):
        return dict(zip(tree, parts, strict=True))
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with function(leaf) in place of every leaf."""
    if is_node(tree):
        return rebuilt(tree, [mapped(function, child) for child in children(tree)])
    return function(tree)


def matched(prefix: Any, tree: Any) -> list[Any] | None:
    """One entry of `prefix` per leaf of `tree`: an entry that is no node holds for everything below its place.

    None where the two have different structures.
    """
    if not is_node(prefix):
        return [prefix] * len(leaves(tree))
    if type(prefix) is not type(tree) and not (type(prefix) in (tuple, list) and type(tree) in (tuple, list)):
        return None
    if isinstance(prefix, dict):
        if prefix.keys() != tree.keys():
            return None
        pairs = [(prefix[key], tree[key]) for key in tree]
    else:
        if len(prefix) != len(tree):
            return None
        pairs = list(zip(prefix, tree, strict=True))
    found: list[Any] = []
    for one, part in pairs:
        below = matched(one, part)
        if below is None:
            return None
        found += below
    return found
