"""Prediction first: the reader commits to an answer, then the expression runs (PyTorch has no part for it).

The right answer stands nowhere: it is computed on the reader's own PyTorch when they have committed, and only
then does it leave the kernel.
"""

from __future__ import annotations

import ast
import builtins
import html
import re
import symtable
import sys
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any

import traitlets

from ._base import GlassboxWidget, script, themed_css
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
# `code`, **bold**, *italic*; the stars of 2 * 3 * 4 and a*b*c are none of these
_MARKS = re.compile(r"(`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*(?=[^\s*])[^*]*(?<=\S)\*(?![\w*]))")


class Predict(GlassboxWidget):
    """One question; make it with `predict`.

    Traits: `chosen` (what the reader committed to, "" before), `done`, `ok` (None before), `answer` (the
    computed one as text, "" before), `raised` (the answer is an exception). `commit(text)` does what the
    button does.
    """

    _esm = script("predict.js")
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
        self._namespace = _needed(source, ns)
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
        if not self.done:
            raise KeyboardInterrupt("predict: stopped before there was an answer; commit again to retry.")
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
        namespace = dict(self._namespace)
        try:
            exec(self._setup, namespace)
            value = eval(self._final, namespace)
            ok, answer, raised = same_answer(self.chosen, value), repr(value), False
        except KeyboardInterrupt:
            # The reader stopped it, so nothing was answered: they may commit again.
            self.chosen = ""
            return
        except BaseException as error:  # anything else is a possible answer, also what exit() raises
            ok, answer, raised = self.chosen.strip() == type(error).__name__, _in_a_line(error), True
        self.ok, self.answer, self.raised = ok, _short(answer), raised
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
                f"<code>{html.escape(self.answer)}</code></p>{_as_html(self.explanation)}"
            )
        return (
            f'<div style="border-left:4px solid #6e9bd6;padding:4px 14px"><p>{html.escape(self.question)}</p>'
            f"<pre><code>{html.escape(self.expression)}</code></pre>{ask}{after}</div>"
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
    because      the explanation, shown after the answer; blank lines part paragraphs, `code`, **bold** and
                 *italic* work
    ns           names to evaluate in instead of the caller's; the objects are looked up now, so a name that a
                 later cell binds anew does not change the question

    If the expression raises, the name of the exception type is the right answer; interrupting the kernel
    while it runs takes the commitment back. SyntaxError if it is no expression, NameError if it uses a name
    that does not exist.
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


def _needed(source: str, ns: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's objects that the question uses, and no more, so that it keeps nothing else alive.

    Which names those are is Python's own reading: a name bound by an except clause, a match pattern, a
    comprehension or a function's parameter is the question's own.
    """
    used: set[str] = set()
    perhaps: set[str] = set()
    own: set[str] = set()
    tables = [symtable.symtable(source, "<predict>", "exec")]
    while tables:
        table = tables.pop()
        outermost, in_class = table.get_type() == "module", table.get_type() == "class"
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if outermost or symbol.is_global():
                if symbol.is_referenced():
                    used.add(name)
                if symbol.is_assigned() or symbol.is_imported():
                    own.add(name)
            elif in_class and symbol.is_referenced():
                # A class body looks a name of its own up outside while it is not bound yet.
                perhaps.add(name)
        tables += table.get_children()
    imports_all = any(
        alias.name == "*"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )
    missing = sorted(n for n in used - own if n not in ns and not hasattr(builtins, n))
    # What `from math import *` brings shows only when it runs.
    if missing and not imports_all:
        raise NameError(
            f"predict: {', '.join(missing)} in {source!r} is not defined here; run the cells above first."
        )
    return {name: ns[name] for name in used | perhaps if name in ns and not _ends_the_kernel(ns[name])}


def _ends_the_kernel(value: Any) -> bool:
    """IPython's own exit and quit stop the kernel later; Python's raise SystemExit, which is an answer."""
    return type(value).__module__ == "IPython.core.autocall"


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


def _in_a_line(error: BaseException) -> str:
    """An exception's type and the first line of its message."""
    name = type(error).__name__
    try:
        message = "" if error.args == (None,) else str(error).strip().split("\n")[0]
    except Exception:
        message = ""
    return f"{name}: {message}" if message else name


def _as_html(explanation: str) -> str:
    """The explanation for a static page, with the marks that predict.js knows."""
    return "".join(f"<p>{_inline(part)}</p>" for part in re.split(r"\n\s*\n", explanation) if part.strip())


def _inline(source: str) -> str:
    parts = []
    for part in _MARKS.split(source):
        tag, width = ("code", 1) if part[:1] == "`" else ("strong", 2) if part[:2] == "**" else ("em", 1)
        marked = _MARKS.fullmatch(part)
        text = html.escape(part[width:-width] if marked else part)
        parts.append(f"<{tag}>{text}</{tag}>" if marked else text)
    return "".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= _ANSWER_LENGTH else text[: _ANSWER_LENGTH - 1] + "…"
