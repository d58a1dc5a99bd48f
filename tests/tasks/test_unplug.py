"""Unplugging: a work-saver answers with one clear sentence while a piece is tried, and is back afterwards."""

import functools
import sys

import numpy
import pytest
import torch

import glassbox.mini
from glassbox.tasks import answering
from glassbox.tasks.unplug import Unplugged, UnpluggedError, trial, unplugged

PACKAGES = ("torch", "torchvision", "numpy", "glassbox")


def _written(source, **names):
    """A learner's function f as a notebook holds it: its globals are the notebook's names."""
    namespace = {"__name__": "__main__", **names}
    exec(source, namespace)
    return namespace["f"]


def _tried(function, *args):
    with unplugged(function, PACKAGES):
        return answering.answer(function, args)


USES = {
    "torch by name": (("return torch.empty(n).stride()"), {"torch": torch}),
    "numpy under another name": ("return np.empty(n).strides", {"np": numpy}),
    "a function of numpy": ("return ravel((1,), (n,))", {"ravel": numpy.ravel_multi_index}),
    "a class of torch": ("return Size((n,))", {"Size": torch.Size}),
    "a function of torch": ("return empty(n).stride()", {"empty": torch.empty}),
    "an array in a global": ("return table[n]", {"table": numpy.arange(9)}),
    "a tensor in a global": ("return table[n]", {"table": torch.arange(9)}),
    "mini by name": ("return mini.zeros(n).stride()", {"mini": glassbox.mini}),
    "a function of mini": ("return zeros(n).stride()", {"zeros": glassbox.mini.zeros}),
    "a piece": ("return piece((n,))", {"piece": glassbox.mini.c10.layout.contiguous_strides}),
    "import inside": ("import torch\n    return torch.empty(n).stride()", {}),
    "import of a part inside": (
        "from glassbox.mini.c10 import layout\n    return layout.contiguous_strides((n,))",
        {},
    ),
    "import from inside": ("from numpy import empty\n    return empty(n).strides", {}),
    "a truth value": ("return 1 if table else 2", {"table": numpy.arange(9)}),
    "arithmetic": ("return 1 + table", {"table": torch.arange(9)}),
}


@pytest.mark.parametrize("use", USES)
def test_a_use_gives_the_sentence(use):
    body, names = USES[use]
    answer = _tried(_written(f"def f(n):\n    {body}", **names), 3)
    assert answer["raised"] == "UnpluggedError", answer
    assert answer["message"].endswith(
        "is unplugged while your piece is tried: write it with plain Python numbers and tuples."
    )


def test_plain_python_is_all_there():
    function = _written(
        "import math, itertools\ndef f(n):\n    return math.prod([n, 2]), list(itertools.product(range(2)))"
    )
    assert _tried(function, 3) == {"value": [6, [[0], [1]]]}


def test_everything_is_back_afterwards():
    names = {"torch": torch, "np": numpy, "zeros": glassbox.mini.zeros, "table": numpy.arange(3)}
    function = _written("def f(n):\n    raise SystemExit", **names)
    modules = dict(sys.modules)
    _tried(function, 1)
    assert all(function.__globals__[name] is value for name, value in names.items())
    assert {name: id(module) for name, module in sys.modules.items()} == {n: id(m) for n, m in modules.items()}


def test_everything_is_back_after_an_exception_in_the_block():
    function = _written("def f(n):\n    return n", torch=torch)
    with pytest.raises(KeyError), unplugged(function, PACKAGES):
        assert function.__globals__["torch"] is not torch
        raise KeyError
    assert function.__globals__["torch"] is torch
    assert sys.modules["torch"] is torch


@pytest.mark.parametrize("wrap", [lambda f: functools.partial(f), lambda f: functools.wraps(f)(lambda *a: f(*a))])
def test_wrapped_functions_are_seen_through(wrap):
    assert _tried(wrap(_written("def f(n):\n    return torch.empty(n)", torch=torch)), 3)["raised"] == "UnpluggedError"


def test_a_callable_object_is_seen_through():
    namespace = {"__name__": "__main__", "torch": torch}
    exec("class Piece:\n    def __call__(self, n):\n        return torch.empty(n)\nf = Piece()", namespace)
    assert _tried(namespace["f"], 3)["raised"] == "UnpluggedError"


def test_the_sentence_names_what_was_used():
    function = _written("def f(n):\n    return np.lib.stride_tricks.as_strided(n)", np=numpy)
    with (
        unplugged(function, PACKAGES),
        trial(),
        pytest.raises(UnpluggedError, match=r"^numpy\.lib\.stride_tricks\.as_strided is"),
    ):
        function(3)


def test_a_package_that_was_not_loaded_before_is_absent_too(tmp_path, monkeypatch):
    (tmp_path / "never_loaded.py").write_text("def answer(n):\n    return n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = _written("def f(n):\n    import never_loaded\n    return never_loaded.answer(n)")
    with unplugged(function, ("never_loaded",)):
        assert answering.answer(function, (1,))["raised"] == "UnpluggedError"
    assert "never_loaded" not in sys.modules
    assert answering.answer(function, (1,)) == {"value": 1}


def test_what_was_imported_meanwhile_and_took_stand_ins_in_is_imported_anew(tmp_path, monkeypatch):
    (tmp_path / "builds_on_numpy.py").write_text("import numpy as np\ntable = np.arange(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = _written("def f(n):\n    import builds_on_numpy\n    return n")
    assert _tried(function, 1)["raised"] == "UnpluggedError"
    import builds_on_numpy

    assert builds_on_numpy.table.tolist() == [0, 1, 2]


def test_a_name_that_the_function_bound_to_a_stand_in_is_gone_afterwards():
    function = _written("def f(n):\n    global helper\n    import numpy as helper\n    return n")
    assert _tried(function, 1) == {"value": 1}
    assert "helper" not in function.__globals__


def test_outside_a_trial_a_stand_in_does_nothing_and_passes_for_what_is_asked():
    thing = Unplugged("torch")
    thing.manual_seed(0)
    thing.backends.flag = True
    assert f"{thing.zeros(2):.3f}" == "<torch.zeros, unplugged>"
    assert [*thing.zeros(3)] == []
    assert not isinstance(3, thing.Tensor)

    @thing.no_grad()
    def kept(shape: thing.Size | tuple) -> "tuple | thing.Size":
        return shape

    class Net(thing.nn.Module):
        pass

    with thing.device("cpu"):
        assert kept((1,)) == (1,)
    assert Net.__mro__ == (Net, object)
