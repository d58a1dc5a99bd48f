"""Facts about the names that tensors get: what the caller wrote, or the variable, or a position."""

import sys
from typing import Any

from glassbox.xray._names import argument_names


def names(*args: Any, **_: Any) -> list[str]:
    return argument_names(sys._getframe(1), args)


def test_an_argument_is_called_as_it_is_written() -> None:
    größe, rows = [1.0], [[2.0], [3.0]]
    assert names(größe, rows[0], rows[1][0]) == ["größe", "rows[0]", "rows[1][0]"]
    assert names(
        größe,  # a comment in between
        rows[-1],
    ) == ["größe", "rows[-1]"]
    both = [names(größe), names(rows[1])]
    assert both == [["größe"], ["rows[1]"]]


def test_the_inner_of_two_calls_on_a_line_is_meant() -> None:
    x = [0]
    assert names(names(x)[0], x) == ["names(x)[0]", "x"]


def test_where_the_text_is_unknown_the_variable_or_the_position_is_named() -> None:
    first, second = [1], [2]
    given = [first, second, [3]]
    assert names(*given) == ["first", "second", "$2"]
    scope: dict[str, Any] = {"names": names, "only": [4]}
    exec("found = names(only, [5])", scope)
    assert scope["found"] == ["only", "$1"]


def test_a_long_expression_is_no_name() -> None:
    x = [0]
    assert names([x[0] + 1, x[0] + 2, x[0] + 3, x[0] + 4, x[0] + 5]) == ["$0"]
