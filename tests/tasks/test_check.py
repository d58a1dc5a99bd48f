"""The learner's check: what it shows for an untouched, a wrong and a right function."""

import re
import sys
from dataclasses import replace

import pytest

from glassbox.tasks import answering, catalogue, check, lab1, show
from glassbox.tasks.check import PUBLIC_SEED, try_out
from glassbox.tasks.compare import compare
from glassbox.tasks.model import cases
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


def _inverted(shape, stride, dims):
    """Every dimension moves where it should come from."""
    order = [dim % len(shape) for dim in dims]
    back = [order.index(dim) for dim in range(len(shape))]
    return tuple(shape[dim] for dim in back), tuple(stride[dim] for dim in back)


def _labels(text):
    return re.findall(r"^ {7}([a-z ]+): ", text, re.MULTILINE)


def test_only_the_first_failing_property_has_a_likely_slip():
    """A permutation the wrong way round fails in the second property too, for the reason of the first."""
    checked = try_out(catalogue.find("lab1.permute"), _inverted)
    assert [result.won for result in checked.results] == [False] * 3
    assert _labels(str(checked)) == ["likely slip", "also look at", "also look at"]
    page = checked._repr_html_()
    assert page.count("<strong>Likely slip:</strong>") == 1
    assert page.count("<strong>Also look at:</strong>") == 2


def test_the_first_failure_is_the_one_that_is_drawn():
    page = try_out(catalogue.find("lab1.permute"), _inverted)._repr_html_()
    assert page.count("<svg") == 1
    assert page.index("any order of the dimensions</strong>") < page.index("<svg")
    assert page.index("<svg") < page.index("dimensions counted from the end</strong>")


def test_a_float_for_an_int_is_named_and_not_drawn(solved):
    def floats(shape):
        strides = solved["channels_last_strides"](shape)
        return (*strides[:-1], float(strides[-1]))

    checked = try_out(catalogue.find("lab1.channels_last_strides"), floats)
    assert _labels(str(checked)) == ["another type"] * 4
    assert "another type: 5.0 is a float, an int is asked for" in str(checked)
    page = checked._repr_html_()
    assert "<strong>Another type:</strong> 5.0 is a float, an int is asked for" in page
    assert "<svg" not in page
    halved = try_out(checked.task, lambda shape: tuple(step / 2 for step in floats(shape)))
    assert "<svg" not in halved._repr_html_()


def test_a_picture_never_calls_a_wrong_answer_the_same(solved):
    """An offset more than is asked for changes nothing that a picture shows."""
    page = try_out(catalogue.find("lab1.permute"), lambda *args: (*solved["permute"](*args), 0))._repr_html_()
    assert "((2,), (1,), 0)" in page
    assert "<svg" not in page


@pytest.mark.parametrize(
    ("yours", "advice"),
    [
        ({"timeout": True}, "look for: a loop that never ends"),
        ({"died": True}, "look for: what in your code ends the process: os._exit(), a signal"),
        ({"raised": "SystemExit", "message": ""}, "look for: exit() or sys.exit() in your code"),
    ],
)
def test_what_ends_the_answers_is_told_once_with_advice(yours, advice):
    task = catalogue.find("lab1.permute")
    group = [
        ((11, 2, 10), (240, 60, 2), (1, 2, 0)),
        ((2, 3), (3, 1), (1, 0)),
        ((7, 7, 2), (14, 2, 1), (0, 1, 2)),
    ]
    results = compare(task, [[case] for case in group], [[yours]] * 3)
    text = show.as_text(task, results, "heading")
    assert text.count("yours    ") == 1
    assert text.count(advice) == 1
    assert "tried    permute((2, 3), (3, 1), (1, 0))" in text
    assert "the same in: any order of the dimensions; orders that are none" in text
    page = show.as_html(task, results, "heading")
    assert page.count("<strong>Look for:</strong>") == page.count("<svg") == 1


def test_an_answer_late_in_a_property_still_has_its_advice_first():
    """After some right answers a loop is a better guess than the property's slip."""
    task = catalogue.find("lab1.permute")
    first = [((2, 3), (3, 1), (1, 0)), ((2,), (1,), (0,))]
    right = {"value": [[3, 2], [1, 3]]}
    results = compare(replace(task, properties=task.properties[:1]), [first], [[right, {"timeout": True}]])
    assert _labels(show.as_text(task, results, "")) == ["look for", "also look at"]


def test_the_same_error_is_told_once_and_another_one_apart():
    def broken(shape, stride, dims):
        return undefined  # noqa: F821

    def picky(shape, stride, dims):
        raise TypeError(f"{len(shape)}")

    task = catalogue.find("lab1.permute")
    text = str(try_out(task, broken))
    assert text.count("yours    raises NameError") == 1
    assert "the same in: dimensions counted from the end; orders that are none" in text
    results = compare(task, [[((2,), (1,), (0,))], [((2, 3), (3, 1), (1, 0))], []], [[], [], []])
    assert show.as_text(task, results, "").count("yours    no answer came") == 1
    cases = [[((2,), (1,), (0,))], [((2, 3), (3, 1), (1, 0))], [((2,), (1,), (1,))]]
    answers = [[answering.answer(picky, case) for case in group] for group in cases]
    # One message with a value asked for, one with two dimensions, one with IndexError asked for.
    assert show.as_text(task, compare(task, cases, answers), "").count("yours    raises TypeError: ") == 3


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
    with pytest.raises(KeyError, match="there is no task 'lab1.nothing'; this lab has lab1.contiguous_strides"):
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


def test_a_program_stands_one_line_above_the_call():
    task = next(task for task in catalogue.tasks("lab5").values() if task.builds)
    (text, *rest) = cases(task, PUBLIC_SEED)[0][0]
    shown = show.call_text(task, (f"{text.rstrip()}\n\n", *rest))
    assert shown.startswith(f"{text.rstrip()}\n\n{task.function}(")
