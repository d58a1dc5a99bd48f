"""What knows nothing wins nothing: functions without thought lose every property of every task."""

import pytest

from .labs import EACH_TASK, LABS, tried

EXCEPTIONS = (RuntimeError, IndexError, ValueError, TypeError, KeyError, NotImplementedError, ZeroDivisionError)


def _raising(kind):
    def function(*args):
        raise kind("always")

    return function


def _constant(value):
    return lambda *args: value


def _argument(at):
    return lambda *args: args[at]


def _first(count):
    return lambda *args: args[:count]


CONSTANTS = ((), [], 0, 1, -1, None, True, False, "", ((), ()), ((), (), 0), [()], (1,))

FUNCTIONS = {
    **{f"raises {kind.__name__}": _raising(kind) for kind in EXCEPTIONS},
    **{f"returns {value!r}": _constant(value) for value in CONSTANTS},
    **{f"returns argument {at}": _argument(at) for at in range(-1, 7)},
    **{f"returns the first {count} arguments": _first(count) for count in (1, 2, 3)},
    "returns all arguments": lambda *args: args,
    "zeros like the first": lambda *args: (0,) * len(args[0]),
    "ones like the first": lambda *args: (1,) * len(args[0]),
    "zeros like the last": lambda *args: (0,) * len(args[-1]),
    "the first backwards": lambda *args: args[0][::-1],
    "how many dimensions": lambda *args: len(args[0]),
}


def _functions(lab):
    return {**FUNCTIONS, **lab.table.TRIVIAL}


@pytest.mark.parametrize(("lab", "name"), EACH_TASK, ids=str)
def test_a_trivial_function_wins_no_property(lab, name, full):
    for trivial, function in _functions(lab).items():
        if (name, trivial) in lab.table.RIGHT_THERE:
            continue
        for seed in range(lab.seeds(full)):
            results = tried(lab.remembering[name], function, f"seed/{seed}")
            assert [r.prop.name for r in results if r.won] == [], (trivial, seed)


@pytest.mark.parametrize("lab", LABS, ids=str)
def test_the_same_functions_win_where_they_are_right(lab):
    """So the test above can tell the two apart."""
    for name, trivial in sorted(lab.table.RIGHT_THERE):
        results = tried(lab.remembering[name], _functions(lab)[trivial], "right")
        assert all(result.won for result in results)
