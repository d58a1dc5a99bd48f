"""Entries of native_functions.yaml and derivatives.yaml, explained (torchgen/packaged/ATen/native, .../autograd)."""

from __future__ import annotations

from dataclasses import dataclass

from .table import Rows, Table, html_table


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument or result of an operator's schema.

    type          without the alias annotation: "Tensor", "SymInt[]", "Scalar?"
    annotation    "a", "a!", "a -> *"; "" for one that shares no memory
    default       as written; None where there is none
    keyword       whether it can be given by name only
    meaning       type and annotation in words
    """

    name: str
    type: str
    annotation: str = ""
    default: str | None = None
    keyword: bool = False
    meaning: str = ""

    def __str__(self) -> str:
        kind = self.type.replace("Tensor", f"Tensor({self.annotation})", 1) if self.annotation else self.type
        return f"{kind} {self.name}".rstrip() + ("" if self.default is None else f"={self.default}")


@dataclass(frozen=True, slots=True)
class NativeFunction(Table):
    """An operator's entry in native_functions.yaml; made by `native_function`.

    name        "add.Tensor"
    schema      the whole func line
    arguments, returns   its parts
    fields      the other lines, as (key, value) in their order, values as text
    dispatch    (keys, kernel): the C++ function in at::native that is registered to these keys
    delegate    the entry that structured_delegate names
    kind        what the generator makes of it: "composite implicit", "composite explicit", "structured", "delegates",
                "backends", "no kernel", "generated" or "absent"
    generated_by  the entry that the generator made this operator from, where it has none of its own
    notes       (what, in words) for the rows: what the fields mean and what the generator does
    text        the entry itself; "" where there is none
    """

    name: str
    schema: str
    arguments: tuple[SchemaArgument, ...]
    returns: tuple[SchemaArgument, ...]
    fields: tuple[tuple[str, str], ...]
    dispatch: tuple[tuple[tuple[str, ...], str], ...]
    kind: str
    notes: tuple[tuple[str, str], ...] = ()
    delegate: NativeFunction | None = None
    generated_by: str = ""
    text: str = ""

    def field(self, key: str) -> str:
        """The value of a line such as "variants"; "" where the entry has no such line."""
        return dict(self.fields).get(key, "")

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(tag.strip() for tag in self.field("tags").strip("[]").split(",") if tag.strip())

    @property
    def variants(self) -> tuple[str, ...]:
        """ "function", "method" or both; the generator takes "function" where nothing is said."""
        found = self.field("variants") or ("function" if self.text else "")
        return tuple(each.strip() for each in found.split(",") if each.strip())

    def kernel(self, key: str) -> str:
        """The C++ function for a dispatch key, also where the delegate names it; "" where neither does."""
        for keys, kernel in self.dispatch:
            if key in keys:
                return kernel
        return self.delegate.kernel(key) if self.delegate is not None else ""

    def rows(self) -> Rows:
        notes = dict(self.notes)
        found: Rows = [{"part": "func", "says": self.schema, "meaning": notes.get("func", "")}]
        found += [
            {"part": f"argument {each.name}", "says": str(each), "meaning": each.meaning} for each in self.arguments
        ]
        found += [{"part": "returns", "says": str(each), "meaning": each.meaning} for each in self.returns]
        found += [{"part": key, "says": value, "meaning": notes.get(key, "")} for key, value in self.fields]
        found += [
            {"part": "dispatch", "says": f"{', '.join(keys)}: {kernel}", "meaning": notes.get(f"dispatch {kernel}", "")}
            for keys, kernel in self.dispatch
        ]
        if self.delegate is not None:
            found += [
                {**row, "part": f"{self.delegate.name}: {row['part']}"}
                for row in self.delegate.rows()
                if row["part"] in ("structured", "structured_inherits", "ufunc_inner_loop", "dispatch")
            ]
        found += [{"part": "so", "says": "", "meaning": words} for key, words in self.notes if key == "so"]
        return found

    def caption(self) -> str:
        if self.text:
            return f"{self.name} in native_functions.yaml"
        return f"{self.name}: no entry of its own in native_functions.yaml"

    def _repr_html_(self) -> str:
        folded = f"<details><summary>the entry</summary>{_pre(self.text)}</details>" if self.text else ""
        return html_table(self.rows(), self.caption()) + folded


@dataclass(frozen=True, slots=True)
class Formula:
    """How one gradient is reckoned.

    of       the arguments that get a gradient, or for forward mode the results that get a tangent
    formula  C++ over the operator's arguments, its results and grad, as written
    saved    tensors and other values that the node keeps for it, as they are needed
    facts    what it keeps of tensors besides: "self.scalar_type()" keeps a dtype and no tensor
    key      the autograd key that it is for, "Default" for all
    meaning  in words, where there is something to say
    """

    of: tuple[str, ...]
    formula: str
    saved: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    key: str = "Default"
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Derivative(Table):
    """An operator's entry in derivatives.yaml; made by `derivative`.

    name          "add_.Tensor"
    entry         the entry that counts for it: its own, or the functional operator's for an in-place one; "" for none
    node          the class of its backward nodes, "AddBackward0"; "" where it makes none
    backward, forward    the formulas of reverse and of forward mode
    constant      arguments that are declared to have no gradient
    differentiable       per result, whether it has a gradient: "True", "False" or a condition; empty: all have
    reason        why there is no formula, or what else is to be said
    text          the entry itself
    """

    name: str
    entry: str
    node: str
    backward: tuple[Formula, ...]
    forward: tuple[Formula, ...] = ()
    constant: tuple[str, ...] = ()
    differentiable: tuple[str, ...] = ()
    reason: str = ""
    text: str = ""

    @property
    def saved(self) -> tuple[str, ...]:
        """The values that its nodes may keep, each once; by the formulas for all keys, where there are such."""
        chosen = [each for each in self.backward if each.key == "Default"] or self.backward
        return tuple(dict.fromkeys(name for formula in chosen for name in formula.saved))

    def formula(self, argument: str) -> str:
        """The formula for the gradient of an argument; KeyError where it has none."""
        for each in self.backward:
            if argument in each.of:
                return each.formula
        known = ", ".join(name for each in self.backward for name in each.of) or "none"
        raise KeyError(f"{self.name} has no formula for {argument!r}; it has one for: {known}.")

    def rows(self) -> Rows:
        found: Rows = []
        for mode, formulas in (("gradient of", self.backward), ("tangent of", self.forward)):
            for each in formulas:
                key = "" if each.key == "Default" else f" ({each.key})"
                kept = [*each.saved, *each.facts]
                found.append(
                    {
                        "part": f"{mode} {', '.join(each.of)}{key}",
                        "says": each.formula,
                        "keeps": ", ".join(kept) if mode == "gradient of" else "",
                        "meaning": each.meaning,
                    }
                )
        if self.constant:
            words = "declared to have no gradient"
            found.append(
                {"part": "non_differentiable", "says": ", ".join(self.constant), "keeps": "", "meaning": words}
            )
        if self.differentiable:
            words = "per result, whether it is part of the graph"
            says = ", ".join(self.differentiable)
            found.append({"part": "output_differentiability", "says": says, "keeps": "", "meaning": words})
        if self.reason:
            found.append({"part": "so", "says": "", "keeps": "", "meaning": self.reason})
        return found

    def caption(self) -> str:
        if not self.entry:
            return f"{self.name}: no entry in derivatives.yaml"
        of = "" if self.entry == self.name else f" (the entry of {self.entry})"
        return f"{self.name} in derivatives.yaml{of}" + (f": its node is {self.node}" if self.node else "")

    def _repr_html_(self) -> str:
        folded = f"<details><summary>the entry</summary>{_pre(self.text)}</details>" if self.text else ""
        return html_table(self.rows(), self.caption()) + folded


def _pre(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<pre style="white-space:pre-wrap">{escaped}</pre>'
