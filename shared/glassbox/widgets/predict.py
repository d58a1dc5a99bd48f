"""Prediction first: the reader commits to an answer, then the expression runs (PyTorch has no part for it).

The right answer stands nowhere: it is computed on the reader's own PyTorch when they have committed, and only
then does it leave the kernel.
"""

from __future__ import annotations

import ast
import builtins
import html
import sys
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any

import traitlets

from ._base import GlassboxWidget, asset, themed_css
from .answers import same_answer

_TRUTH = ("True", "False")
_TRUTH_NAMES = {
    "isinstance",
    "issubclass",
    "hasattr",
    "callable",
    "bool",
    "equal",
    "allclose",
    "requires_grad",
}
_ANSWER_LENGTH = 400


class Predict(GlassboxWidget):
    """One question; make it with `predict`.

    Traits: `chosen` (what the reader committed to, "" before), `done`, `ok` (None before), `answer` (the
    computed one as text, "" before), `raised` (the answer is an exception). `commit(text)` does what the
    button does.
    """

    _esm = asset("predict.js")
    _css = themed_css("predict.css")

    question = traitlets.Unicode("What will this give?").tag(sync=True)
    expression = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    chosen = traitlets.Unicode("").tag(sync=True)
    answer = traitlets.Unicode("").tag(sync=True)
    explanation = traitlets.Unicode("").tag(sync=True)
    raised = traitlets.Bool(False).tag(sync=True)
    ok = traitlets.Bool(None, allow_none=True).tag(sync=True)
    done = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, expression: str, choices: Iterable[Any] | None, because: str, ns: Mapping[str, Any]
    ) -> None:
        source = expression.strip()
        self._setup, self._final = _compile(source)
        self._because = because
        self._namespace = _needed(source, self._setup, self._final, ns)
        options = (
            _choices(source) if choices is None else [c if isinstance(c, str) else repr(c) for c in choices]
        )
        super().__init__(expression=source, choices=options)

    def commit(self, text: object) -> bool:
        """Commits to `text` as the reader would and returns whether it was right.

        ValueError if it is empty or not one of the choices, RuntimeError if an answer was already given.
        """
        given = text if isinstance(text, str) else repr(text)
        if self.done:
            raise RuntimeError(
                f"predict: you have already committed to {self.chosen!r}; run the cell again to retry."
            )
        if not given.strip():
            raise ValueError("predict: the prediction is empty; give your answer as text.")
        if self.choices and given not in self.choices:
            raise ValueError(
                f"predict: {given!r} is no choice here; choose one of {', '.join(self.choices)}."
            )
        self.chosen = given
        return bool(self.ok)

    @traitlets.validate("chosen")
    def _keep_first(self, proposal: dict[str, Any]) -> str:
        if self.done or (self.choices and proposal["value"] not in ("", *self.choices)):
            raise traitlets.TraitError(f"predict: {proposal['value']!r} cannot be committed to (any more).")
        return proposal["value"]

    @traitlets.observe("chosen")
    def _reveal(self, change: dict[str, Any]) -> None:
        if self.done or not change["new"]:
            return
        try:
            exec(self._setup, self._namespace)
            value = eval(self._final, self._namespace)
            self.ok = same_answer(self.chosen, value)
            self.answer = _short(repr(value))
        except Exception as error:  # an exception of any kind is a possible answer
            name = type(error).__name__
            message = str(error).strip().split("\n")[0]
            self.raised = True
            self.ok = self.chosen.strip() == name
            self.answer = _short(f"{name}: {message}" if message else name)
        self.explanation = self._because
        self._namespace = {}
        self.done = True

    def static_html(self) -> str:
        options = " &nbsp;·&nbsp; ".join(f"<code>{html.escape(c)}</code>" for c in self.choices)
        ask = f"<p>{options}</p>" if options else ""
        after = ""
        if self.done:
            verdict = "right" if self.ok else "not so"
            after = (
                f"<p>predicted <code>{html.escape(self.chosen)}</code> ({verdict}); computed "
                f"<code>{html.escape(self.answer)}</code></p><p>{html.escape(self.explanation)}</p>"
            )
        return (
            f'<div style="border-left:4px solid #6e9bd6;padding:4px 14px"><p>{html.escape(self.question)}</p>'
            f"<pre>{html.escape(self.expression)}</pre>{ask}{after}</div>"
        )

    def __str__(self) -> str:
        options = f" ({' / '.join(self.choices)})" if self.choices else ""
        state = f" -> {self.answer}, predicted {self.chosen}" if self.done else ""
        return f"{self.question} {self.expression}{options}{state}"


def predict(
    expression: str,
    choices: Iterable[Any] | None = None,
    because: str = "",
    ns: Mapping[str, Any] | None = None,
) -> Predict:
    """Asks the reader what `expression` gives; evaluates it in the caller's namespace once they have
    committed.

    expression   Python; lines before the last may prepare it (what they assign stays inside the question)
    choices      what can be chosen; without it True and False if the expression looks like a truth value,
                 else a text field (`choices=()` forces the field)
    because      the explanation, shown after the answer; blank lines part paragraphs, `code` and **bold**
                 work
    ns           names to evaluate in instead of the caller's; the objects are looked up now, so a name that a
                 later cell binds anew does not change the question

    If the expression raises, the name of the exception type is the right answer. SyntaxError if it is no
    expression, NameError if it uses a name that does not exist.
    """
    if ns is None:
        frame = sys._getframe(1)
        ns = {**frame.f_globals, **frame.f_locals}
    return Predict(expression, choices, because, ns)


def _compile(source: str) -> tuple[CodeType, CodeType]:
    tree = ast.parse(source, "<predict>")
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        raise SyntaxError(
            f"predict: {source!r} must end with an expression; that is what the reader predicts."
        )
    setup = compile(ast.Module(tree.body[:-1], []), "<predict>", "exec")
    return setup, compile(ast.Expression(last.value), "<predict>", "eval")


def _needed(source: str, setup: CodeType, final: CodeType, ns: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's objects that the question uses, and no more, so that it keeps nothing else alive."""
    nodes = list(ast.walk(ast.parse(source)))
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    own |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    imports = [n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))]
    own |= {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    missing = sorted(n for n in used - own if n not in ns and not hasattr(builtins, n))
    if missing:
        raise NameError(
            f"predict: {', '.join(missing)} in {source!r} is not defined here; run the cells above first."
        )
    return {name: ns[name] for name in used if name in ns}


def _choices(source: str) -> list[str]:
    """True and False for what can only be a truth value by its form; otherwise nothing, which means a text
    field.
    """
    node = ast.parse(source).body[-1]
    assert isinstance(node, ast.Expr)
    value = node.value
    if isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    else:
        name = value.attr if isinstance(value, ast.Attribute) else ""
    negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    truth = (
        isinstance(value, ast.Compare) or negated or name in _TRUTH_NAMES or name.startswith(("is_", "has_"))
    )
    return list(_TRUTH) if truth else []


def _short(text: str) -> str:
    return text if len(text) <= _ANSWER_LENGTH else text[: _ANSWER_LENGTH - 1] + "…"
