"""Asking a learner's function: one answer a call from a forked child, whatever it does to its process."""

import contextlib
import faulthandler
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from glassbox.tasks import answering
from glassbox.tasks.answering import answer, ask

PATIENCE = 60.0
"""Seconds for what ends by itself: never reached, so that a busy machine changes nothing."""

SHORT = 0.5
"""Seconds for what never ends."""


def _double(n):
    return 2 * n


def _ask(function, calls=((1,), (2,), (3,)), seconds=PATIENCE):
    return ask(function, calls, seconds)


def _at(number, action):
    """Doubles, but does something else for one number."""
    return lambda n: action() if n == number else 2 * n


def _loop():
    while True:
        pass


def _swallowing_loop():
    while True:
        try:
            while True:
                pass
        except BaseException:  # noqa: B036 - what the test is about
            continue


def _segfault():
    faulthandler.disable()  # pytest's own would print a page about it
    os.kill(os.getpid(), signal.SIGSEGV)


def _raise(error):
    raise error


def test_values_errors_and_what_is_not_plain():
    assert _ask(_double) == ([{"value": 2}, {"value": 4}, {"value": 6}], "")
    assert _ask(_at(2, lambda: _raise(IndexError("too far"))))[0][1] == {
        "raised": "IndexError",
        "message": "too far",
    }
    assert "of type object" in _ask(_at(2, object))[0][1]["notplain"]


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), NotImplementedError(), GeneratorExit()])
def test_every_exception_is_an_answer_and_the_next_call_is_tried(error):
    answers, _ = _ask(_at(2, lambda: _raise(error)))
    assert [next(iter(a)) for a in answers] == ["value", "raised", "value"]
    assert answers[1]["raised"] == type(error).__name__


def test_an_exception_that_cannot_be_printed_is_one_by_name():
    class MuteError(Exception):
        def __str__(self):
            raise ValueError

    assert answer(lambda: _raise(MuteError()), ()) == {"raised": "MuteError", "message": ""}


@pytest.mark.parametrize("loop", [_loop, _swallowing_loop, lambda: time.sleep(3600)])
def test_a_loop_is_killed_and_the_rest_skipped(loop):
    answers, _ = _ask(_at(2, loop), seconds=SHORT)
    assert answers[1:] == [{"timeout": True}, {"skipped": True}]


@pytest.mark.parametrize(
    "end",
    [
        lambda: os._exit(0),
        _segfault,
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        lambda: os.closerange(3, 256),
    ],
)
def test_a_death_costs_its_call_and_the_rest(end):
    answers, _ = _ask(_at(2, end))
    assert answers == [{"value": 2}, {"died": True}, {"skipped": True}]


def test_memory_is_limited():
    answers, _ = _ask(_at(2, lambda: len(bytearray(6 << 30))))
    assert answers[0] == {"value": 2}
    assert answers[1].get("raised") == "MemoryError"


def test_a_function_that_forks_gives_its_own_answers_in_time():
    def forking():
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        return "parent"

    answers, _ = _ask(_at(2, forking), seconds=2.0)
    assert answers == [{"value": 2}, {"value": "parent"}, {"value": 6}]


def test_the_asking_process_is_left_alone():
    state = []

    def spoiling(n):
        state.append(n)
        os.environ["SPOILT"] = "1"
        sys.setrecursionlimit(77)
        return n

    before = sys.getrecursionlimit()
    _ask(spoiling)
    assert (state, "SPOILT" in os.environ, sys.getrecursionlimit()) == ([], False, before)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no list of processes")
def test_no_child_is_left_behind():
    before = _children()
    _ask(_double)
    _ask(_loop_on_all, seconds=SHORT)
    assert _children() == before


def _children():
    """This process's children, ended ones too that nobody waited for."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(stat.parent.name)
    return found


def _loop_on_all(n):
    _loop()


def test_what_is_printed_comes_back_cut_and_costs_nothing():
    def talking(n):
        print("out", n)
        print("err", n, file=sys.stderr)
        return n

    answers, printed = _ask(talking)
    assert [a["value"] for a in answers] == [1, 2, 3]
    assert "out 1\nerr 1\n" in printed
    assert len(_ask(_at(2, lambda: print("x" * 10**6)))[1]) <= 2000


def test_a_printed_answer_is_no_answer():
    answers, printed = _ask(lambda n: print('{"value": 2}'))
    assert answers == [{"value": None}] * 3
    assert '{"value": 2}' in printed


def test_arguments_arrive_as_they_were_sent():
    seen, _ = _ask(lambda *args: [type(arg).__name__ for arg in args], calls=(((1, 2), 3, None, ()),))
    assert seen == [{"value": ["tuple", "int", "NoneType", "tuple"]}]


def test_a_process_that_the_function_left_behind_ends_with_it(tmp_path):
    note = tmp_path / "pid"

    def leaves_one_behind(n):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        note.write_text(str(child))
        return n

    answers, _ = ask(leaves_one_behind, ((1,),), seconds=5)
    assert answers == [{"value": 1}]
    gone = time.monotonic() + 20
    while time.monotonic() < gone and _alive(int(note.read_text())):
        time.sleep(0.05)
    assert not _alive(int(note.read_text()))


def _alive(pid):
    """Whether the process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_line_that_is_nested_too_deep_is_no_answer():
    answers, _ = answering._collect("[" * 100_000 + "\n" + '{"value": 1}\n', 2, "died")
    assert answers == [{"value": 1}, {"died": True}]
