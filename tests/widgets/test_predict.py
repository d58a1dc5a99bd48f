"""Facts about predictions: commit first, then the expression runs; what a reader types is never executed."""

import gc
import json
import re
import weakref
from pathlib import Path

import pytest
import torch
import traitlets
from IPython.core.autocall import ZMQExitAutocall

import glassbox.widgets
from glassbox.widgets import predict
from glassbox.widgets.answers import same_answer

a = torch.arange(12.0).view(3, 4)


def sent(widget):
    """What the browser gets to know."""
    state = {k: v for k, v in widget.get_state().items() if not k.startswith("_") and k != "layout"}
    return json.dumps(state, default=str)


def test_nothing_is_computed_or_sent_before_the_commit():
    calls = []
    question = predict("calls.append(1) or 'a secret'", because="a reason", ns={"calls": calls})
    assert calls == []
    assert (question.answer, question.ok, question.done) == ("", None, False)
    assert "a reason" not in sent(question)
    question.commit("something")
    assert calls == [1]
    assert "a secret" in question.answer
    assert "a reason" in sent(question)


def test_right_and_wrong_predictions():
    assert predict("a.T.is_contiguous()").commit("False")
    question = predict("a.T.is_contiguous()")
    assert not question.commit("True")
    assert (question.chosen, question.ok, question.answer) == ("True", False, "False")


def test_the_browser_commits_by_setting_chosen():
    question = predict("a.T.is_contiguous()", because="why")
    question.set_state({"chosen": "False"})
    assert (question.done, question.ok, question.explanation) == (True, True, "why")


def test_the_first_commitment_counts():
    question = predict("a.T.is_contiguous()")
    question.commit("True")
    with pytest.raises(traitlets.TraitError):
        question.set_state({"chosen": "False"})
    assert (question.chosen, question.ok) == ("True", False)
    with pytest.raises(RuntimeError, match="already committed to 'True'"):
        question.commit("False")


def test_commit_refuses_what_is_no_prediction():
    question = predict("a.T.is_contiguous()")
    with pytest.raises(ValueError, match="choose one of True, False"):
        question.commit("maybe")
    with pytest.raises(ValueError, match="is empty"):
        predict("a.shape").commit("  ")
    with pytest.raises(traitlets.TraitError):
        question.set_state({"chosen": "maybe"})
    assert question.chosen == ""


@pytest.mark.parametrize(
    "expression", ["a.is_contiguous()", "a.shape == (3, 4)", "not a.dim()", "1 < 2 < 3", "isinstance(a, int)"]
)
def test_truth_values_offer_true_and_false(expression):
    assert predict(expression).choices == ["True", "False"]


@pytest.mark.parametrize("expression", ["a.shape", "a.T.view(12)", "a.stride()", "a.sum()"])
def test_other_expressions_ask_for_text(expression):
    assert predict(expression).choices == []


def test_choices_can_be_given_or_ruled_out():
    assert predict("a.stride()", choices=[(4, 1), (1, 4)]).choices == ["(4, 1)", "(1, 4)"]
    assert predict("a.stride()", choices=[(4, 1), (1, 4)]).commit((4, 1))
    assert predict("a.is_contiguous()", choices=()).choices == []


def test_an_exception_is_an_answer():
    question = predict("a.T.view(12)")
    assert question.commit("RuntimeError")
    assert question.raised
    assert question.answer.startswith("RuntimeError: view size is not compatible")
    assert not predict("a.T.view(12)").commit("ValueError")


def test_the_namespace_is_the_callers_and_is_taken_at_once():
    b = torch.zeros(2)
    question = predict("b.shape")
    b = torch.zeros(5)
    assert question.commit("(2,)")
    assert b.numel() == 5


def test_lines_before_the_last_prepare_and_stay_inside():
    question = predict("b = a.T\nc = [n for n in b.shape]\nc")
    assert question.commit("[4, 3]")
    assert "b" not in globals()


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("try:\n    a.T.view(12)\nexcept RuntimeError as e:\n    r = str(e)[:4]\nr", "view"),
        ("match a.shape:\n    case (n, *others): pass\nothers", "[4]"),
        ("match {'k': 1, 'm': 2}:\n    case {'k': v, **rest}: pass\nrest", "{'m': 2}"),
        ("match 3:\n    case found: pass\nfound", "3"),
        ("from math import *\nsqrt(4)", "2.0"),
        ("import os.path as p\np.basename('x/y')", "y"),
        ("[(w := i) for i in range(3)]\nw", "2"),
        ("import io\nwith io.StringIO() as f: pass\nf.closed", "True"),
        ("def g(n):\n    def h(m): return m + n + a.dim()\n    return h\ng(1)(2)", "5"),
        ("def g():\n    global q\n    q = 3\ng()\nq", "3"),
        ("class C:\n    a = a.T\n    def m(self): return self.a.shape\nC().m()", "(4, 3)"),
        ("x: int = 3\nx", "3"),
        ("a = a.T\na.shape", "(4, 3)"),
        ("gone = 3\ndel gone\ngone", "NameError"),
    ],
)
def test_names_that_the_question_binds_itself_are_its_own(source, answer):
    assert predict(source, choices=()).commit(answer)


@pytest.mark.parametrize(
    "source",
    [
        "def g(): return nowhere\ng()",
        "[nowhere for i in range(3)]",
        "try: pass\nexcept ValueError as e: pass\nnowhere",
        "class C:\n    def m(self): return nowhere\nC()",
    ],
)
def test_a_name_is_missed_wherever_it_is_used(source):
    with pytest.raises(NameError, match="nowhere in .* run the cells above first"):
        predict(source)


def test_a_question_keeps_only_what_it_uses_alive():
    class Thing:
        pass

    used, unused = Thing(), Thing()
    alive = weakref.ref(used), weakref.ref(unused)
    question = predict("type(used).__name__", ns={"used": used, "unused": unused})
    del used, unused
    gc.collect()
    assert (alive[0]() is None, alive[1]() is None) == (False, True)
    question.commit("Thing")
    gc.collect()
    assert alive[0]() is None


def test_an_interrupted_question_can_be_committed_to_again():
    calls = []

    def slow():
        calls.append(1)
        if len(calls) < 3:
            raise KeyboardInterrupt
        return 7

    question = predict("slow()", because="the reason")
    with pytest.raises(KeyboardInterrupt, match="commit again"):
        question.commit("6")
    assert (question.chosen, question.done, question.ok, question.answer) == ("", False, None, "")
    question.set_state({"chosen": "6"})  # as the browser does: nothing is raised there
    assert (question.chosen, question.done) == ("", False)
    assert "the reason" not in sent(question)
    assert question.commit("7")
    assert question.explanation == "the reason"


def test_what_an_interrupted_setup_did_is_forgotten():
    rounds = [KeyboardInterrupt, None]

    def step():
        if error := rounds.pop(0):
            raise error

    question = predict("n = n + 1\nstep()\nn", ns={"n": 1, "step": step})
    question.set_state({"chosen": "2"})
    assert not question.done
    assert question.commit("2")


@pytest.mark.parametrize("source", ["exit()", "quit()", "raise SystemExit(3)\n1", "__import__('sys').exit()"])
def test_an_exit_is_an_answer_and_ends_nothing(source, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)  # Python's own exit() would close it
    stops = ZMQExitAutocall(ip=None)  # IPython's would stop the kernel
    question = predict(source, ns={"exit": stops, "quit": stops})
    assert question.commit("SystemExit")
    assert question.raised
    assert question.answer.startswith("SystemExit") and "None" not in question.answer


def test_an_exception_without_a_message_of_its_own_is_still_an_answer():
    class OddError(Exception):
        def __str__(self):
            raise ValueError

    def fail():
        raise OddError

    question = predict("fail()")
    assert question.commit("OddError")
    assert question.answer == "OddError"


def test_marks_in_the_explanation_reach_a_static_page():
    question = predict("1 < 2", because="a **b** and *c d* and `*e*`, 2 * 3 * 4, x*y*z\n\n*f* <g>")
    question.commit("True")
    assert question.static_html().endswith(
        "<p>a <strong>b</strong> and <em>c d</em> and <code>*e*</code>, 2 * 3 * 4, x*y*z</p>"
        "<p><em>f</em> &lt;g&gt;</p></div>"
    )


def test_the_browser_knows_the_same_marks():
    from glassbox.widgets.predict import _MARKS

    assert f"/{_MARKS.pattern}/" in str(predict("1 < 2")._esm)


@pytest.mark.parametrize(("sheet", "root"), [("predict", "predict"), ("stride_explorer", "explorer")])
def test_a_widgets_own_rules_win_whichever_sheet_comes_last(sheet, root):
    """Every selector of a sheet of its own names one class more than those that all widgets share."""
    folder = Path(glassbox.widgets.__file__).parent

    def selectors(name):
        text = re.sub(r"\{[^}]*\}", ";", (folder / name).read_text(encoding="utf-8"))
        return [s.strip() for s in re.split(r"[;,]", text) if s.strip()]

    own, shared = selectors(f"{sheet}.css"), selectors("base.css")
    assert own and [s for s in own if not s.startswith(f".gb-widget.gb-{root}")] == []
    assert shared and [s for s in shared if not re.match(r"\.gb-widget(?![.\w-])", s)] == []


def test_a_name_that_does_not_exist_and_a_statement_are_refused_at_once():
    with pytest.raises(NameError, match="nowhere in 'nowhere.shape' is not defined here"):
        predict("nowhere.shape")
    with pytest.raises(SyntaxError, match="must end with an expression"):
        predict("b = 3")
    with pytest.raises(SyntaxError):
        predict("a.shape)")


def test_nothing_that_the_reader_types_is_executed():
    hits = []
    question = predict("3", ns={"hits": hits})
    assert not question.commit("hits.append(1) or 3")
    assert hits == []
    assert not predict("3").commit("__import__('os').getpid()")


def test_a_static_export_shows_the_question_without_the_answer():
    question = predict("a.T.is_contiguous()", because="the strides")
    data, _ = question._repr_mimebundle_()
    assert "a.T.is_contiguous()" in data["text/html"]
    assert "<code>True</code>" in data["text/html"]
    assert "the strides" not in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data
    question.commit("False")
    assert "the strides" in question.static_html()


def test_expression_and_answer_are_escaped_in_html():
    question = predict("'<i>' < '<j>'")
    assert "<i>" not in question.static_html()
    question.commit("True")
    assert "<i>" not in question.static_html()


def test_a_question_prints():
    question = predict("a.T.is_contiguous()")
    assert str(question) == "What will this give? a.T.is_contiguous() (True / False)"


def test_the_script_inserts_text_and_never_html():
    source = str(predict("1 < 2")._esm)
    assert "innerHTML" not in source
    assert 'setAttribute("role", "status")' in source


def test_traits_can_be_observed():
    seen = []
    question = predict("a.T.is_contiguous()")
    question.observe(lambda change: seen.append(change["new"]), "done")
    question.commit("False")
    assert seen == [True]
    assert isinstance(question, traitlets.HasTraits)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("True", True),
        ("true", True),
        ("(3, 4)", torch.Size([3, 4])),
        ("[3,4]", torch.Size([3, 4])),
        ("3, 4", torch.Size([3, 4])),
        ("torch.Size([3, 4])", torch.Size([3, 4])),
        ("Size([3,4])", torch.Size([3, 4])),
        ("(12,)", torch.Size([12])),
        ("66", torch.tensor(66.0)),
        ("tensor(66.)", torch.tensor(66.0)),
        ("[0, 4, 8]", torch.tensor([0.0, 4.0, 8.0])),
        ("tensor([0, 4, 8])", torch.tensor([0, 4, 8])),
        ("0.3333", 1 / 3),
        ("4", 4.0),
        ("torch.float32", torch.float32),
        ("int", int),
        ("<class 'int'>", int),
        ("torch.Tensor", torch.Tensor),
        ("Tensor", torch.Tensor),
        ("float32", torch.float32),
        ("cpu", torch.device("cpu")),
        ("None", None),
        ("none", None),
        ("hello  world", "hello world"),
        ("'hello'", "hello"),
        ("3 4", torch.Size([3, 4])),
        ("[3 4]", (3, 4)),
        ("-1 2.5", [-1, 2.5]),
        *((given, {3, 5, 8}) for given in ("3 5 8", "{3,5,8}", "[8, 5, 3]", "5, 3, 8", "(8 3 5)", "3, 3, 5, 8")),
        ("3", {3}),
        ("'b', 'a'", {"a", "b"}),
        ("set()", set()),
    ],
)
def test_same_answer(given, answer):
    assert same_answer(given, answer)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("1", True),
        ("True", 1),
        ("(4, 3)", torch.Size([3, 4])),
        ("3", torch.Size([3])),
        ("float64", torch.float32),
        ("float", int),
        ("str", "text"),
        ("0.4", 1 / 3),
        ("", 0),
        ("4", "5"),
        ("1 + 1", 2),
        ("(" * 300, 2),
        ("4 3", torch.Size([3, 4])),
        ("{3, 4}", (3, 4)),
        *((given, {3, 5, 8}) for given in ("3 5", "3 5 8 9", "3, 5, 7", "358", "{}", "True 5 8")),
        ("True", {1}),
        ("3", set()),
    ],
)
def test_different_answer(given, answer):
    assert not same_answer(given, answer)
