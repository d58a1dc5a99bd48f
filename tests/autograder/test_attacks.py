"""Submissions that try to earn what they did not solve, and honest ones that must not lose what they did.

Each is graded through nbgrader. Two tasks, together 8 points, are solved in every one.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from .conftest import Desk, named

pytestmark = pytest.mark.slow

SOLVED = ("contiguous_strides", "address")
EIGHT = 8.0
Edit = Callable[[Any], Any]


def cell(source: str, place: int = 0) -> Edit:
    """Inserts a code cell."""

    def edit(notebook: Any) -> None:
        notebook.cells.insert(place if place >= 0 else len(notebook.cells), nbformat.v4.new_code_cell(source))

    return edit


def instead(piece: str, source: str) -> Edit:
    """Replaces a learner's cell."""

    def edit(notebook: Any) -> None:
        named(notebook, piece).source = source

    return edit


def after(piece: str, source: str) -> Edit:
    """Puts more code behind a learner's cell."""

    def edit(notebook: Any) -> None:
        named(notebook, piece).source += "\n" + source

    return edit


def before(piece: str, source: str) -> Edit:
    """Puts code in front of a learner's own, in the same cell."""

    def edit(notebook: Any) -> None:
        named(notebook, piece).source = source + named(notebook, piece).source

    return edit


def metadata(piece: str, **changes: Any) -> Edit:
    """Changes the nbgrader metadata of a cell."""

    def edit(notebook: Any) -> None:
        named(notebook, piece).metadata.nbgrader.update(changes)

    return edit


def tag_checks(notebook: Any) -> None:
    for one in notebook.cells:
        if one.metadata.get("nbgrader", {}).get("grade") and one.cell_type == "code":
            one.metadata["tags"] = ["skip-execution"]
            one.outputs = [
                nbformat.v4.new_output("execute_result", data={"text/plain": "10"}, execution_count=1)
            ]


def strip_metadata(notebook: Any) -> None:
    for one in notebook.cells:
        one.metadata = nbformat.NotebookNode()


def strip_metadata_and_ids(notebook: Any) -> None:
    for number, one in enumerate(notebook.cells):
        one.metadata, one.id = nbformat.NotebookNode(), f"cell-{number}"


def delete_checks(notebook: Any) -> None:
    notebook.cells = [c for c in notebook.cells if not c.metadata.get("nbgrader", {}).get("grade")]


def swap_ids(notebook: Any) -> None:
    one, two = named(notebook, "check_contiguous_strides"), named(notebook, "check_expand")
    one.metadata.nbgrader.grade_id, two.metadata.nbgrader.grade_id = (
        "check_expand",
        "check_contiguous_strides",
    )
    one.id, two.id = two.id, one.id


def copy_check(notebook: Any) -> None:
    twin = copy.deepcopy(named(notebook, "check_address"))
    twin.id = "twin"
    notebook.cells.append(twin)


def checks_as_markdown(notebook: Any) -> None:
    check = named(notebook, "check_address")
    place = notebook.cells.index(check)
    twin = nbformat.v4.new_markdown_cell(check.source, metadata=check.metadata)
    notebook.cells[place] = twin


def forged_checks(notebook: Any) -> None:
    check = copy.deepcopy(named(notebook, "check_address"))
    check.metadata.nbgrader.grade_id, check.id = "check_free_points", "free"
    check.source = "7"
    notebook.cells.append(check)


def carriage_returns(notebook: Any) -> None:
    for one in notebook.cells:
        one.source = one.source.replace("\n", "\r\n")


def half_characters(notebook: Any) -> None:
    notebook.cells[0].source += b" \\ud800".decode("unicode_escape")
    notebook.metadata["author"] = b"\\ud800".decode("unicode_escape")


EMIT_ERRORS = """
import glassbox.tasks.answering as answering
def emit(orders):
    for group, calls in enumerate(orders["groups"]):
        for _ in range({times}):
            answering._emit({{"v": 1, "nonce": orders["nonce"], "group": group,
                             "answers": [{answer} for call in calls]}})
def check(task, function):
    orders, answering._orders = answering._orders, None
    emit(orders)
answering.check = check
import glassbox.tasks
glassbox.tasks.check = check
"""

SPOILED: dict[str, tuple[Edit, float]] = {
    "patches numpy.testing": (
        cell("import numpy.testing as t\nt.assert_allclose = t.assert_equal = lambda *a, **k: None"),
        EIGHT,
    ),
    "patches the comparison": (
        cell("import glassbox.tasks.plain as p\np.same = lambda *a: True\np.plain = lambda value: value"),
        EIGHT,
    ),
    "empties every later cell by an input transformer": (
        cell("get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])"),
        0.0,
    ),
    "prints full marks": (
        instead("expand", "def expand(*a):\n    print('7')\n    print('10')\n    raise ValueError"),
        EIGHT,
    ),
    "publishes a result of its own": (
        cell(
            "import glassbox.tasks as t\nreal = t.check\n"
            "def check(task, function):\n    real(task, function)\n"
            "    k = get_ipython().kernel\n"
            "    k.session.send(k.iopub_socket, 'execute_result', {'data': {'text/plain': '7'},"
            " 'metadata': {}, 'execution_count': 1}, parent=k.get_parent('shell'))\n"
            "t.check = check"
        ),
        EIGHT,
    ),
    "ends the check with a number": (
        cell(
            "import glassbox.tasks as t\nreal = t.check\n"
            "get_ipython().ast_node_interactivity = 'all'\n"
            "t.check = lambda task, function: (real(task, function), 99)[1]"
        ),
        EIGHT,
    ),
    "answers an exception for everything": (
        cell(EMIT_ERRORS.format(times=1, answer='{"raised": "RuntimeError", "message": ""}')),
        0.0,
    ),
    "answers its first argument for everything": (
        cell(EMIT_ERRORS.format(times=1, answer='{"value": call[0] if call else None}')),
        0.0,
    ),
    "answers many times": (
        cell(EMIT_ERRORS.format(times=5, answer='{"value": None}')),
        0.0,
    ),
    "rewrites its answers later": (
        instead(
            "expand",
            "from IPython.display import display\n"
            "def expand(shape, stride, size):\n    return (0,) * len(size)\n"
            "h = display({'text/plain': 'x'}, raw=True, display_id='later')",
        ),
        EIGHT,
    ),
    "emits from a thread in another cell": (
        cell(
            "import threading, time\nimport glassbox.tasks.answering as a\n"
            "def spam():\n    for _ in range(200):\n"
            "        a._emit({'v': 1, 'nonce': 'x' * 32, 'group': 0, 'answers': []})\n"
            "        time.sleep(.01)\n"
            "threading.Thread(target=spam, daemon=True).start()"
        ),
        EIGHT,
    ),
    "skips the checks by a tag and keeps old outputs": (tag_checks, EIGHT),
    "uses torch": (
        instead("expand", "import torch\ndef expand(shape, stride, size):\n"
                "    return torch.empty(1000).as_strided(shape, stride).expand(size).stride()"),
        EIGHT,
    ),
    "uses the reference piece": (
        instead("expand", "from glassbox.mini.c10.layout import expand"),
        EIGHT,
    ),
    "uses numpy": (
        instead("expand", "import numpy as np\ndef expand(shape, stride, size):\n"
                "    return tuple(s // 8 for s in np.broadcast_to(np.zeros(shape), size).strides)"),
        EIGHT,
    ),
    "brings a package called glassbox": (cell(
        "import os\nos.makedirs('glassbox/tasks', exist_ok=True)\n"
        "open('glassbox/__init__.py', 'w').close()\n"
        "open('glassbox/tasks/__init__.py', 'w').write('def check(*a): print(100)')"), EIGHT),
    "swaps the checks' ids": (swap_ids, EIGHT),
    "claims a hundred points for a check": (metadata("check_address", points=100), EIGHT),
    "adds a check of its own": (forged_checks, EIGHT),
    "declares a check ungraded": (metadata("check_address", grade=False), EIGHT),
    "declares a check its own solution": (metadata("check_address", solution=True, locked=False), EIGHT),
    "claims an old metadata schema": (metadata("check_address", schema_version=1), EIGHT),
    "puts nonsense into the metadata": (metadata("check_expand", grade_id=["x"], points="many"), EIGHT),
    "floods the output": (cell("for _ in range(300):\n    print('x' * 100_000)"), EIGHT),
    "sends a message that cannot be read": (
        instead(
            "expand",
            "k = get_ipython().kernel\n"
            "def expand(*a):\n    return None\n"
            "s, parent = k.session, k.get_parent('shell')\n"
            "pack, s.pack = s.pack, lambda o: b'1' * 100_000\n"
            "s.send(k.iopub_socket, 'display_data', {}, parent=parent)\n"
            "s.pack = pack",
        ),
        EIGHT,
    ),
    "answers nested without end": (
        instead("expand", "def expand(*a):\n    return []\n"
                "import glassbox.tasks.answering as a\n"
                "deep = []\nfor _ in range(900):\n    deep = [deep]\n"
                "real = a.ask\n"
                "a.ask = lambda f, calls, s: ([{'value': deep}] * len(calls), '')"
                " if f is expand else real(f, calls, s)"),
        EIGHT,
    ),
    "answers half a character": (
        instead("expand", "def expand(*a):\n    raise ValueError('\\ud800')\nprint('\\ud800')"),
        EIGHT,
    ),
    "sends half a character and a count that is no number": (
        instead("expand", "k = get_ipython().kernel\ndef expand(*a):\n    return None\n"
                "send = lambda kind, content: k.session.send(k.iopub_socket, kind, content,"
                " parent=k.get_parent('shell'))\n"
                "send('stream', {'name': 'stdout', 'text': '\\ud800'})\n"
                "send('display_data', {'data': 3, 'metadata': {}})\n"
                "send('execute_input', {'code': '', 'execution_count': 'many'})"),
        EIGHT,
    ),
    "asks a Python that it finds by name": (
        instead("expand", "import json, subprocess\ndef expand(*a):\n"
                "    code = 'import sys, json, torch; s, t, u = json.loads(sys.argv[1]);'\n"
                "    code += 'print(torch.empty(999).as_strided(s, t).expand(u).stride())'\n"
                "    for name in ('python', 'python3'):\n        try:\n"
                "            return eval(subprocess.check_output([name, '-c', code, json.dumps(a)]))\n"
                "        except Exception:\n            pass"),
        EIGHT,
    ),
}  # fmt: skip

HONEST: dict[str, tuple[Edit, float]] = {
    "stderr and warnings": (
        after("address", "import sys, warnings\n_inner = address\n"
              "def address(*a):\n    warnings.warn('careful')\n    print('note', file=sys.stderr)\n"
              "    return _inner(*a)"),
        EIGHT,
    ),
    "a helper called check": (cell("def check(x):\n    return x\n_check = 3"), EIGHT),
    "lists instead of tuples": (
        after("contiguous_strides", "_strides = contiguous_strides\ndef contiguous_strides(shape):\n"
              "    return list(_strides(shape))"),
        EIGHT,
    ),
    "a partial, an object with __call__": (
        after("address", "import functools\naddress = functools.partial(address)\n"
              "class Callable_:\n    def __init__(self, f):\n        self.f = f\n"
              "    def __call__(self, *a):\n        return self.f(*a)\n"
              "contiguous_strides = Callable_(contiguous_strides)"),
        EIGHT,
    ),
    "imports what is absent in the cell of a piece": (
        before("address", "import math, torch, numpy as np\nfrom glassbox import mini, draw\n"
               "from glassbox.tasks.play import running_on\nfrom torch import nn\n"
               "import torch.nn.functional as F\n"),
        EIGHT,
    ),
    "torch and NumPy used above a piece, in its cell": (
        before("address", "import torch, numpy as np, math\ntorch.manual_seed(0)\n"
               "np.set_printoptions(precision=3)\n"
               "print(torch.empty(2, 3).stride())\nassert True\n"),
        EIGHT,
    ),
    "types of torch in a signature": (
        after("address", "import torch\nfrom glassbox import mini\n_kept = address\n"
              "def address(index: torch.Size | tuple, shape: 'x', stride: mini.Size | None, offset):\n"
              "    return _kept(index, shape, stride, offset)"),
        EIGHT,
    ),
    "magics and packages that are not there, above what is needed": (
        instead("contiguous_strides", "%matplotlib inline\nimport no_such_package\nfrom math import prod\n"
                "def contiguous_strides(shape):\n"
                "    return [prod(max(n, 1) for n in shape[i + 1:]) for i in range(len(shape))]"),
        EIGHT,
    ),
    "a class of torch as a base": (
        before("address", "import torch.nn as nn\nclass Net(nn.Module):\n    pass\n"), EIGHT),
    "half a character in a cell and in the metadata": (half_characters, EIGHT),
    "metadata lost on the way": (strip_metadata, EIGHT),
    "metadata and cell ids lost on the way": (strip_metadata_and_ids, EIGHT),
    "checks deleted": (delete_checks, EIGHT),
    "a check copied": (copy_check, EIGHT),
    "a check made into text": (checks_as_markdown, EIGHT),
    "Windows line ends": (carriage_returns, EIGHT),
    "exits inside a piece": (instead("expand", "import os\ndef expand(*a):\n    os._exit(0)"), EIGHT),
    "a crash inside a piece": (
        instead("expand", "import ctypes\ndef expand(*a):\n    ctypes.string_at(0)"),
        EIGHT,
    ),
    "a loop that swallows interrupts inside a piece": (
        instead("expand", "def expand(*a):\n    while True:\n        try:\n            while True:\n"
                "                pass\n"
                "        except BaseException:\n            pass"),
        EIGHT,
    ),
    "all the memory inside a piece": (
        instead("expand", "def expand(*a):\n    return [0] * 10**10"), EIGHT,
    ),
    "sys.exit and input() in cells of their own": (cell("import sys\nsys.exit(3)"), EIGHT),
    "a kernel killed between tasks": (
        cell("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", 3), EIGHT),
    "a syntax error in a piece": (instead("expand", "def expand(:"), EIGHT),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SPOILED, *HONEST])
def test_submission_gets_what_it_solved(desk: Desk, name: str) -> None:
    edit, expected = {**SPOILED, **HONEST}[name]
    notebook = desk.solved(*SOLVED)
    edit(notebook)
    grade = desk.grade(notebook)
    won = {task.id: task.score for task in grade.tasks if task.score}
    assert grade.score == expected, won
    assert grade.max_score == 100
    assert desk.graded_path().stat().st_size < 3_000_000


def test_a_cell_that_blocks_the_kernel_costs_only_itself(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    cell(
        "while True:\n    try:\n        while True:\n            pass\n"
        "    except BaseException:\n        pass",
        2,
    )(notebook)
    with settings(desk, timeout=3):
        assert desk.grade(notebook).score == EIGHT


def test_a_kernel_that_no_longer_answers_is_given_up_in_bounded_time(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    cell("async def stub(*a, **k):\n    pass\nget_ipython().run_cell_async = stub")(notebook)
    with settings(desk, timeout=2):
        assert desk.grade(notebook).score == 0


def test_slow_cells_cost_themselves(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    for _ in range(5):
        cell("import time\ntime.sleep(30)", 2)(notebook)
    with settings(desk, timeout=2):
        assert desk.grade(notebook).score == EIGHT


def test_a_notebook_that_overruns_without_end_is_given_up(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    for _ in range(12):
        cell("import time\ntime.sleep(30)", 2)(notebook)
    with settings(desk, timeout=1):
        grade = desk.grade(notebook)
    assert grade.score == 0
    assert "used up its time" in grade.tasks[0].note


def test_a_flood_of_messages_is_bounded_in_memory(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    flood = "from IPython.display import display, HTML\n"
    flood += "for _ in range(60):\n    display(HTML('x' * 3_000_000))"
    cell(flood, 2)(notebook)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert desk.grade(notebook).score == EIGHT
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kB


@contextlib.contextmanager
def settings(desk: Desk, **values: Any) -> Iterator[None]:
    """Settings of GradedExecute for the time of a block."""
    config = desk.classroom._api.config.GradedExecute
    for name, value in values.items():
        setattr(config, name, value)
    try:
        yield
    finally:
        for name in values:
            del config[name]


def test_no_seed_and_no_nonce_is_found_by_a_cell_or_left_in_a_notebook(desk: Desk, tmp_path: Path) -> None:
    log = tmp_path / "attempts.jsonl"
    notebook = desk.solved(*SOLVED)
    spy = "import os, glob\nprint(dict(os.environ))\n"
    spy += "for f in glob.glob('**', recursive=True):\n"
    spy += "    print(f, open(f).read()) if os.path.isfile(f) else None"
    cell(spy, -1)(notebook)
    with settings(desk, attempt_log=str(log)):
        grade = desk.grade(notebook)
    (line,) = [json.loads(text) for text in log.read_text().splitlines()]
    assert grade.score == EIGHT
    assert line["student"].startswith("s")
    assert len(line["seed"]) == 32
    assert log.stat().st_mode & 0o777 == 0o600
    graded = desk.graded_path().read_text()
    assert line["seed"] not in graded
    assert line["attempt"] in graded
    assert not re.search(r'"nonce"', graded)


def test_a_link_in_the_place_of_the_notebook_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("original")
    notebook = desk.solved(*SOLVED)
    code = "import os, glob\nfor f in glob.glob('*.ipynb'):\n    os.unlink(f)\n"
    cell(code + f"os.symlink({str(victim)!r}, 'lab1_storage.ipynb')")(notebook)
    assert desk.grade(notebook).score == EIGHT
    assert victim.read_text() == "original"


def test_the_same_seed_gives_the_same_report_and_another_one_another_attempt(desk: Desk) -> None:
    notebook = desk.solved("contiguous_strides", "address", "expand")
    named(notebook, "expand").source = "def expand(shape, stride, size):\n    return stride"
    with settings(desk, seed="00" * 16):
        one, two = desk.grade(notebook), desk.grade(notebook)
    assert [task.text for task in one.tasks] == [task.text for task in two.tasks]
    assert [task.text for task in desk.grade(notebook).tasks] != [task.text for task in one.tasks]


def test_a_learners_words_are_escaped_in_the_report(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    named(notebook, "expand").source = "def expand(*a):\n    raise ValueError('<script>alert(1)</script>')"
    task = next(task for task in desk.grade(notebook).tasks if task.id == "lab1.expand")
    assert "<script>" not in task.html
    assert "&lt;script&gt;" in task.html


def test_what_honest_cells_show_stays_in_the_graded_notebook(desk: Desk) -> None:
    notebook = desk.solved(*SOLVED)
    cell("print('my own words')\n'<my value>'", 2)(notebook)
    after("address", "_said = address\ndef address(*a):\n    print('asked')\n    return _said(*a)")(notebook)
    assert desk.grade(notebook).score == EIGHT
    graded = nbformat.read(desk.graded_path(), as_version=4)
    mine = next(c for c in graded.cells if c.source.startswith("print('my own"))
    assert mine.outputs[0].text == "my own words\n"
    assert mine.outputs[1].data["text/plain"] == "'<my value>'"
    check = next(c for c in graded.cells if c.id == "check_address")
    assert [output.output_type for output in check.outputs] == ["execute_result", "stream"]
    assert "asked" in check.outputs[1].text
    for play in (c for c in graded.cells if c.id.startswith("play_")):
        (output,) = play.outputs
        assert output.text == (
            "This cell plays in your notebook; the mini-framework is not here while you are graded.\n"
        )
