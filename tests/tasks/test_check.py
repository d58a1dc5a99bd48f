"""The learner's check: what it shows for an untouched, a wrong and a right function."""

import re
import sys

import pytest

from glassbox.tasks import catalogue, check, lab1, show
from glassbox.tasks.check import try_out
from glassbox.tasks.play import running_on


def _untouched(*args):
    raise NotImplementedError


NAMES = [task.function for task in lab1.TASKS]


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_function_is_not_written_yet(name):
    task = catalogue.find(f"lab1.{name}")
    checked = try_out(task, _untouched)
    assert str(checked) == f"lab1.{name}: not written yet ({task.points} points)"
    assert not any(result.won for result in checked.results)


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_passes(name, solved):
    checked = try_out(catalogue.find(f"lab1.{name}"), solved[name])
    assert checked.passed, str(checked)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_function_is_shown_beside_what_was_expected(name):
    checked = try_out(catalogue.find(f"lab1.{name}"), lambda *args: args[0])
    assert not checked.passed
    for part in ("tried    ", "expected ", "yours    ", f"{name}("):
        assert part in str(checked)
    assert "<table" in checked._repr_html_()


@pytest.mark.parametrize("name", ["permute", "slice_view", "expand", "view_strides", "unfold", "diagonal"])
def test_a_drawing_helps_where_there_is_one(name, solved):
    """Wrong in the strides alone, so that both sides can be drawn."""
    task = catalogue.find(f"lab1.{name}")

    def wrong(*args):
        right = solved[name](*args)
        if right is None:
            return None
        if task.function in ("expand", "view_strides"):
            return tuple(step + 1 for step in right)
        return (right[0], tuple(step + 1 for step in right[1]), *right[2:])

    assert any("<svg" in try_out(task, wrong, seed)._repr_html_() for seed in "abcdef")


def test_a_likely_slip_is_named_where_part_is_right_and_not_where_nothing_is():
    def without_sizes_of_zero(shape):
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        return strides

    task = catalogue.find("lab1.contiguous_strides")
    assert str(try_out(task, without_sizes_of_zero)).count("likely slip: ") == 1
    assert "likely slip" not in str(try_out(task, lambda shape: "?"))


def test_where_no_view_is_expected_the_drawing_shows_none_and_not_the_input():
    """A learner's function that always finds a view, tried on a layout that has none."""
    task = catalogue.find("lab1.view_strides")
    checked = try_out(task, lambda shape, stride, size: (1,) * len(size))
    failures = [result.simplest for result in checked.results if result.simplest]
    none = [failure for failure in failures if failure.expected == {"value": None}]
    assert none
    for failure in none:
        picture = show._picture(task, failure)
        assert re.search(r">\s*expected\s*<.*>\s*None\s*<", picture, re.DOTALL)


def test_an_interrupt_ends_the_whole_check_and_leaves_everything_as_it_was():
    calls = []

    def waiting(*args):
        calls.append(args)
        raise KeyboardInterrupt

    modules, finders = dict(sys.modules), list(sys.meta_path)
    with pytest.raises(KeyboardInterrupt):
        try_out(catalogue.find("lab1.expand"), waiting)
    assert len(calls) == 1
    assert (dict(sys.modules), list(sys.meta_path)) == (modules, finders)


def test_what_a_function_prints_on_either_stream_is_shown_once_and_cut(capsys):
    def talking(*args):
        print("x" * 500)
        print("y" * 500, file=sys.stderr)

    try_out(catalogue.find("lab1.address"), talking)
    shown = capsys.readouterr()
    assert "xxx" in shown.out
    assert "yyy" in shown.out
    assert len(shown.out) < 4000
    assert shown.err == ""


def test_what_a_learner_raises_or_returns_is_escaped():
    def hostile(*args):
        raise ValueError("<script>alert(1)</script>")

    task = catalogue.find("lab1.permute")
    assert "<script>" not in try_out(task, hostile)._repr_html_()
    assert "<b>" not in try_out(task, lambda *args: "<b>bold</b>")._repr_html_()


def test_the_open_cases_stay_the_same():
    task = catalogue.find("lab1.address")
    assert str(try_out(task, lambda *args: 0)) == str(try_out(task, lambda *args: 0))


def test_check_prints_outside_a_notebook_and_raises_nothing(capsys):
    assert check("lab1.address", lambda *args: None) is None
    assert "FAIL" in capsys.readouterr().out


def test_check_raises_the_same_words_under_validate(monkeypatch, solved):
    monkeypatch.setenv("NBGRADER_VALIDATING", "1")
    with pytest.raises(AssertionError, match="0 of 3 properties hold"):
        check("lab1.address", lambda *args: None)
    check("lab1.address", solved["address"])


def test_mistakes_in_the_call_say_what_to_do(solved):
    with pytest.raises(
        KeyError, match="there is no task 'lab1.nothing'; this lab has lab1.contiguous_strides"
    ):
        check("lab1.nothing", solved["address"])
    with pytest.raises(KeyError, match="there is no lab 'lab9'"):
        check("lab9.nothing", solved["address"])
    with pytest.raises(TypeError, match="needs your function address, not int"):
        check("lab1.address", 3)


def test_a_function_is_not_recognised_by_its_name(solved):
    """The task is the literal's, so a function under another name is tried on that task."""
    assert not try_out(catalogue.find("lab1.expand"), solved["contiguous_strides"]).passed


def test_a_play_cell_survives_every_stage_of_the_work(capsys, solved):
    from glassbox import mini

    with running_on(contiguous_strides=_untouched):
        mini.zeros(2, 3).view(3, 2)
    with running_on(contiguous_strides=lambda shape: None):
        mini.zeros(2, 3).view(3, 2)
    with running_on(contiguous_strides=solved["contiguous_strides"]):
        print(mini.zeros(2, 3).stride())
    missing, wrong, right = capsys.readouterr().out.splitlines()
    assert missing == "contiguous_strides: not written yet; this cell will run on yours then."
    assert wrong.startswith("The mini-framework cannot run on your contiguous_strides yet. TypeError: ")
    assert right == "(3, 1)"
    with pytest.raises(ValueError, match="no piece is called 'unfold'"), running_on(unfold=_untouched):
        pass
