"""Facts about predictions: commit first, then the expression runs; what a reader types is never executed."""

import json

import pytest
import torch
import traitlets

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
        ("float32", torch.float32),
        ("cpu", torch.device("cpu")),
        ("None", None),
        ("none", None),
        ("hello  world", "hello world"),
        ("'hello'", "hello"),
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
        ("0.4", 1 / 3),
        ("", 0),
        ("4", "5"),
        ("1 + 1", 2),
        ("(" * 300, 2),
    ],
)
def test_different_answer(given, answer):
    assert not same_answer(given, answer)
