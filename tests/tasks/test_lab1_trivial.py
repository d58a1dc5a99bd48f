"""What knows nothing wins nothing: functions without thought lose every property of every task of lab 1."""

import math

import pytest

from glassbox.tasks.lab1 import TASKS

EXCEPTIONS = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, ZeroDivisionError)


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


def _dense(shape):
    return tuple(math.prod(max(size, 1) for size in shape[dim + 1 :]) for dim in range(len(shape)))


def _dense_of(at):
    return lambda *args: _dense([arg for arg in args if isinstance(arg, tuple)][at])


CONSTANTS = ((), [], 0, 1, -1, None, True, False, "", ((), ()), ((), (), 0), [()], (1,))

FUNCTIONS = {
    **{f"raises {kind.__name__}": _raising(kind) for kind in EXCEPTIONS},
    **{f"returns {value!r}": _constant(value) for value in CONSTANTS},
    **{f"returns argument {at}": _argument(at) for at in range(-1, 7)},
    **{f"returns the first {count} arguments": _first(count) for count in (1, 2, 3)},
    "returns all arguments": lambda *args: args,
    **{f"fresh strides of tuple {at}": _dense_of(at) for at in (0, 1, 2, -1)},
    "shape and fresh strides": lambda *args: (args[0], _dense(args[0])),
    "shape, fresh strides, offset": lambda *args: (args[0], _dense(args[0]), args[2]),
    "last argument, fresh strides, a copy": lambda *args: (args[-1], _dense(args[-1]), True),
    "last argument, fresh strides, a view": lambda *args: (args[-1], _dense(args[-1]), False),
    "zeros like the first": lambda *args: (0,) * len(args[0]),
    "ones like the first": lambda *args: (1,) * len(args[0]),
    "zeros like the last": lambda *args: (0,) * len(args[-1]),
    "the first backwards": lambda *args: args[0][::-1],
    "0 is in the first": lambda *args: 0 in args[0],
    "strides descend": lambda *args: list(args[1]) == sorted(args[1], reverse=True),
    "how many dimensions": lambda *args: len(args[0]),
}

# Where a line of thought is the task itself, it is no trivial function.
RIGHT_THERE = {("contiguous_strides", f"fresh strides of tuple {at}") for at in (0, -1)}
TRIED = [(task.function, trivial) for task in TASKS for trivial in FUNCTIONS]


@pytest.mark.parametrize(("name", "trivial"), [pair for pair in TRIED if pair not in RIGHT_THERE])
def test_a_trivial_function_wins_no_property(name, trivial, lab1, tried, full):
    for seed in range(200 if full else 6):
        won = [r.prop.name for r in tried(lab1[name], FUNCTIONS[trivial], f"trivial/{seed}") if r.won]
        assert not won, (seed, won)


def test_the_same_functions_win_where_they_are_right(lab1, tried):
    """So the test above can tell the two apart."""
    for task, trivial in sorted(RIGHT_THERE):
        assert all(result.won for result in tried(lab1[task], FUNCTIONS[trivial], "right"))
