"""What holds of lab 5 alone: programs from text, parts of PyTorch that are unplugged, examples in its words."""

import functools
import linecache
import re
import subprocess
import sys

import pytest
import torch

from glassbox import xray
from glassbox.tasks import answering, building
from glassbox.tasks.check import try_out
from glassbox.tasks.lab5 import creeping, printing
from glassbox.tasks.unplug import unplugged

from .labs import LABS

LAB = next(lab for lab in LABS if lab.name == "lab5")


def _source(name):
    return next("".join(cell["source"]) for cell in LAB.notebook["cells"] if cell["id"] == name)


def _solve(name, text, *more):
    task = LAB.remembering[name]
    call = building.built(task.builds, (text, *more))
    return answering.answer(LAB.solved[name], call, task.builds)["value"]


def test_the_tasks_come_without_torch():
    code = "import sys, glassbox.tasks.lab5; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "False", ended.stderr


def test_the_notebooks_imports_give_what_the_solutions_are_tried_with():
    found = {}
    exec(_source("imports"), found)
    assert {name: found[name] for name in LAB.table.NAMES} == LAB.table.NAMES


def _example(name, heading="def "):
    """The program in the words of a task, and the list after "gives"."""
    words = _source(f"about_{name}")
    text = re.search(r"```python\n(.*?)```", words, re.DOTALL).group(1)
    gives = re.search(r"\ngives `(.*?)`[.:]? ?", words)
    return text, eval(gives.group(1)) if gives else None


@pytest.mark.parametrize("name", ["hidden_copies", "repeated_work", "float64_sources"])
def test_the_example_in_the_words_is_right(name):
    text, expected = _example(name)
    assert building.built(("text",), (text,)) == (text,)
    assert _solve(name, text) == [list(row) for row in expected]
    assert [list(row) for row in LAB.remembering[name].oracle(f"{text}    return None\n")] == _solve(name, text)


def test_the_example_of_the_budget_is_right():
    text, _ = _example("run_within")
    assert _solve("run_within", text, 2) == ["stopped", 2, "aten.sin.default", 5]
    assert _solve("run_within", text, 3) == _solve("run_within", text, 99) == ["done", 3]


def test_the_examples_of_the_first_tasks_are_right():
    body = ["def program():", "    x = torch.ones(4, 8)", "    y = x + 1", "    float(y.sum())"]
    lines = eval(re.search(r"```python\n(\[.*?)```", _source("about_op_lines"), re.DOTALL).group(1))
    assert _solve("op_lines", "\n".join(body)) == lines
    rows = _solve("portrait", "model = nn.Sequential(nn.Linear(3, 5), nn.ReLU())\nx = torch.rand(2, 3)")
    assert ["aten.addmm.default", 1, 60] in rows
    assert ["aten.relu.default", 1, 0] in rows
    text = 'a = torch.zeros(3, 4)\ntensors = {"a": a, "b": a + 1, "c": a[1:].t()}'
    assert _solve("who_shares", text) == [[["a", "c"], 48], [["b"], 48]]


MAKES_DOUBLES = {
    **{
        name: f"x.{name}(torch.float64)" if name in ("to", "type") else f"x.{name}(torch.ones(1, dtype=torch.float64))"
        for name in ("to", "type", "type_as")
    },
    "double": "x.double()",
    "softmax": "F.softmax(x, 1, dtype=torch.float64)",
    "log_softmax": "F.log_softmax(x, 0, dtype=torch.float64)",
    "full": "torch.full((2, 2), 0.5, dtype=torch.float64)",
    "eye": "torch.eye(2, dtype=torch.float64)",
    "arange": "torch.arange(3, dtype=torch.float64)",
    "linspace": "torch.linspace(0, 1, 3, dtype=torch.float64)",
    "scalar_tensor": "torch.scalar_tensor(0.1, dtype=torch.float64)",
    "new_ones": "x.new_ones(2, 3, dtype=torch.float64)",
    "cumsum": "x.cumsum(0, dtype=torch.float64)",
    **{name: f"torch.{name}(2, 3, dtype=torch.float64)" for name in ("zeros", "ones", "rand")},
    **{name: f"torch.{name}(x, dtype=torch.float64)" for name in ("zeros_like", "rand_like")},
    **{name: f"x.{name}(dtype=torch.float64)" for name in ("sum", "mean", "prod")},
}


@pytest.mark.parametrize("name", [name for name, op in creeping.CALLS.items() if op])
def test_the_oracle_knows_which_operator_makes_float64(name):
    x = torch.rand(2, 3)
    other = torch.ones(1, dtype=torch.float64)
    with xray.op_log() as log:
        eval(
            MAKES_DOUBLES[name].replace("torch.ones(1, dtype=torch.float64)", "other"),
            {**building.run(""), "x": x, "other": other},
        )
    wide = [call.name for call in log if any(each.dtype == "float64" for each in call.outputs)]
    assert wide[0] == creeping.CALLS[name]


@pytest.mark.parametrize(("sign", "name"), [("+", "add"), ("-", "sub"), ("*", "mul")])
def test_the_oracle_knows_the_operators_of_signs(sign, name):
    x = torch.ones(2)
    with xray.op_log() as log:
        eval(f"x {sign} x", {"x": x})
    assert log.names() == [f"aten.{name}.Tensor"]


def test_building_gives_the_names_and_the_rest_and_leaves_random_numbers_as_they_were():
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    text = "x = torch.rand(3)\ndef f():\n    raise ValueError\n"
    first, function, told, rest = building.built(("x", "f", "text"), (text, (1, 2)))
    assert torch.rand(2).tolist() == expected
    assert building.built(("x",), (text,))[0].tolist() == first.tolist()
    assert (told, rest) == (text, (1, 2))
    with pytest.raises(ValueError) as raised:
        function()
    frame = raised.traceback[-1].frame.code.raw
    assert (frame.co_filename, raised.traceback[-1].lineno + 1) == ("<program>", 3)
    assert building.built((), ((1, 2), 3)) == ((1, 2), 3)


def test_what_a_program_says_afterwards_stands_behind_the_value():
    text = "done = []\ndef program():\n    done.append(1)\nprogram.after = lambda: len(done)\n"
    call = building.built(("program",), (text,))
    assert answering.answer(lambda program: program() or "ran", call, ("program",)) == {"value": ["ran", 1]}
    assert answering.answer(lambda program: program() or "ran", call) == {"value": "ran"}


def test_hooks_are_counted_on_layers_and_on_all_modules():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert building.hooks(model) == 0
    handles = [model[0].register_forward_hook(print), model.register_forward_pre_hook(print)]
    handles.append(torch.nn.modules.module.register_module_forward_hook(lambda *args: None))
    assert building.hooks(model) == 3
    for handle in handles:
        handle.remove()
    assert building.hooks(model) == 0


def _leaves_a_hook(before):
    def watch(model):
        before(model)
        model.register_forward_hook(lambda *args: None)
        return "watched"

    return watch


@pytest.mark.parametrize(
    "before",
    [
        lambda model: building.__dict__.update(hooks=lambda model: 0),
        lambda model: setattr(model, "after", lambda: 0),
        lambda model: model.after.__globals__.update(hooks=lambda model: 0),
    ],
    ids=["glassbox.tasks.building", "the model", "the globals of the program"],
)
def test_hooks_are_counted_by_what_was_there_before(before, monkeypatch):
    monkeypatch.setattr(building, "hooks", building.hooks)
    text = "model = nn.Linear(2, 2)\nmodel.after = lambda: hooks(model)\n"
    for _ in range(2):  # a patch outlives the call that made it
        call = building.built(("model",), (text,))
        answer = answering.answer(_leaves_a_hook(before), call, ("model",))
        assert answer == {"value": ["watched", 1]}


def _reachable(value, seen):
    """Strings in what a function or a tensor leads to, through globals, closures, code and attributes."""
    if id(value) in seen or isinstance(value, type(sys)):
        return []
    seen[id(value)] = value
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        within = [*value, *value.values()]
    elif isinstance(value, list | tuple | set):
        within = list(value)
    else:
        names = ("__globals__", "__dict__", "__code__", "__closure__", "__defaults__", "co_consts", "cell_contents")
        within = [getattr(value, name, None) for name in names if not isinstance(value, type)]
    return [text for each in within for text in _reachable(each, seen)]


def test_a_program_does_not_lead_to_its_text():
    line = "x = torch.ones(3) + 12345"
    text = f"def program():\n    {line}\n    return x\n"
    (program,) = building.built(("program",), (text,))
    strings = _reachable(program, {})
    assert "program" in strings
    assert not [each for each in strings if line in each]
    assert text not in linecache.getlines("<program>")


def _learner(body, **names):
    namespace = {"torch": torch, **names}
    exec(f"def f(program):\n    {body}", namespace)
    return namespace["f"]


def _debug_mode():
    from torch.utils._debug_mode import DebugMode

    return DebugMode


def _logging_mode():
    from torch.testing._internal.logging_tensor import LoggingTensorMode

    return LoggingTensorMode


def _flop_registry():
    from torch.utils.flop_counter import flop_registry

    return flop_registry


def _fake_mode():
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode


class _Derived(_fake_mode()):
    """As a learner's cell may derive it above the piece."""


MM = torch.ops.aten.mm
ELSEWHERE = "torch._functorch.aot_autograd"

READY_MADE = {
    "FakeTensorMode from elsewhere": (f"import {ELSEWHERE} as m\n    return m.FakeTensorMode()", {}),
    "FakeTensorMode from elsewhere, by name": (f"from {ELSEWHERE} import FakeTensorMode as M\n    return M()", {}),
    "FakeTensorMode in a list": ("return box[0]()", {"box": [_fake_mode()]}),
    "FakeTensorMode made before": ("with box[0]: return 1", {"box": [_fake_mode()()]}),
    "FakeTensorMode called by another": ("return make()", {"make": functools.partial(_fake_mode())}),
    "a class derived from it": ("return Derived()", {"Derived": _Derived}),
    "make_fx from elsewhere": (f"import {ELSEWHERE} as m\n    return m.make_fx(program)()", {}),
    "the registry of FLOPs": ("return registry[mm]((2, 3), (3, 4))", {"registry": _flop_registry(), "mm": MM}),
    "a copy of the registry": ("return registry[mm]((2, 3), (3, 4))", {"registry": dict(_flop_registry()), "mm": MM}),
    "a function of the registry": ("return box[0]((2, 3), (3, 4))", {"box": (_flop_registry()[MM],)}),
    "a class without a constructor": ("return box[0]()", {"box": [_logging_mode()]}),
    "called by a tree map": (
        "from torch.utils._pytree import tree_map\n    return tree_map(box[0], [1])",
        {"box": [_fake_mode()]},
    ),
    "xray": ("return xray.op_log()", {"xray": xray}),
    "DebugMode by name": ("return DebugMode()", {"DebugMode": _debug_mode()}),
    "DebugMode imported": ("from torch.utils._debug_mode import DebugMode\n    return DebugMode()", {}),
    "by attributes": ("return torch.utils._debug_mode.DebugMode()", {}),
    "FlopCounterMode": ("from torch.utils.flop_counter import FlopCounterMode as F\n    return F()", {}),
    "FakeTensorMode": ("from torch._subclasses import FakeTensorMode\n    return FakeTensorMode()", {}),
    "make_fx": ("from torch.fx.experimental.proxy_tensor import make_fx\n    return make_fx(program)()", {}),
}


@pytest.mark.parametrize("way", READY_MADE)
def test_what_would_do_the_work_is_unplugged(way):
    body, names = READY_MADE[way]
    function = _learner(body, **names)
    before = dict(sys.modules), torch.utils._debug_mode
    with unplugged(function, printing.UNPLUGGED):
        answer = answering.answer(function, (print,))
    assert answer["raised"] == "UnpluggedError", answer
    assert answer["message"].endswith(
        "is unplugged while your piece is tried: write it yourself, on PyTorch's own hooks."
    )
    assert torch.utils._debug_mode is before[1]
    assert {name: id(module) for name, module in sys.modules.items() if name in before[0]} == {
        name: id(module) for name, module in before[0].items()
    }


def test_pytorch_itself_still_uses_what_is_unplugged():
    """And all is as it was afterwards."""
    from torch._subclasses import fake_tensor
    from torch.testing._internal.logging_tensor import LoggingTensorMode

    function = _learner(
        "return torch.export.export(layer, (torch.ones(2, 3),)).graph and 7", layer=torch.nn.Linear(3, 2)
    )
    code, own = fake_tensor.FakeTensorMode.__init__.__code__, dict(vars(LoggingTensorMode))
    with unplugged(function, printing.UNPLUGGED):
        assert fake_tensor.FakeTensorMode.__init__.__code__ is not code
        assert answering.answer(function, (print,)) == {"value": 7}
    assert fake_tensor.FakeTensorMode.__init__.__code__ is code
    assert dict(vars(LoggingTensorMode)) == own
    assert _flop_registry()[MM]((2, 3), (3, 4)) == 48
    with fake_tensor.FakeTensorMode():
        assert type(torch.ones(2)) is fake_tensor.FakeTensor


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.function)
def test_a_check_in_a_notebook_passes_while_all_that_is_unplugged(task):
    assert try_out(task, LAB.solved[task.function]).passed


def test_a_report_shows_the_program_as_it_is_written():
    text = str(try_out(LAB.remembering["op_lines"], lambda program: []))
    assert re.search(r"tried    def program\(\):\n {20}\w+ = torch", text)
    assert "op_lines(program)" in text
