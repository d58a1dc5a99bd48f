"""Where entries come from: the yaml files of the installed torch, or those of the mini-framework, cut into entries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Source:
    """The two files of one framework, each as operator -> the text of its entry, in the file's order.

    schemas   operator -> its schema, where derivatives.yaml gives only the name; empty for PyTorch
    """

    native: Mapping[str, str]
    derivatives: Mapping[str, str]
    schemas: Mapping[str, str]

    def derivative_schema(self, name: str, parsed: Mapping[str, Any]) -> str:
        """The schema of an operator with an entry in derivatives.yaml."""
        return self.schemas.get(name) or str(parsed["name"])


@dataclass(frozen=True)
class Operator:
    """An operator as the files and the dispatcher know it.

    full     "aten::add.Tensor"; own: "add.Tensor" for one of aten, else as full
    schema   "add.Tensor(Tensor self, ...) -> Tensor"
    table    runtime key -> text of its row; dump: what is registered
    """

    full: str
    schema: str
    table: Mapping[str, str]
    dump: str
    source: Source

    @property
    def is_aten(self) -> bool:
        return self.full.startswith("aten::")

    @property
    def own(self) -> str:
        return self.full.removeprefix("aten::")


def look_up(op: Any, where: str) -> Operator:
    """The operator that `op` names, in PyTorch or in the mini-framework; errors as find_operator has them."""
    if type(op).__module__.startswith("glassbox.mini"):
        from .. import mini
        from ._calls_of_mini import OfMini
        from .dispatch_tables import mini_operator

        name = mini_operator(op, where).name()
        return _operator(name, OfMini().table(name), mini._C._dispatch_dump(name), of_mini())
    from . import _torch_internals as internals
    from ._operators import find_operator

    name = find_operator(op, where).name()
    return _operator(name, internals.computed_table(name), internals.registrations(name), of_torch())


def _operator(name: str, table: Mapping[str, str], dump: str, source: Source) -> Operator:
    schema = next((line for line in dump.splitlines() if line.startswith("schema: ")), "").partition("::")[2]
    return Operator(name, schema, table, dump, source)


@lru_cache(maxsize=1)
def of_torch() -> Source:
    """The files of the installed torch: too large to be parsed whole, so their text is cut."""
    from . import _torch_internals as internals

    return Source(_cut(internals.native_functions_yaml(), "func"), _cut(internals.derivatives_yaml(), "name"), {})


@lru_cache(maxsize=1)
def of_mini() -> Source:
    from ..mini import aten, autograd

    native = Path(str(aten.__file__)).with_name("native_functions.yaml").read_text(encoding="utf-8")
    derivatives = Path(str(autograd.__file__)).with_name("derivatives.yaml").read_text(encoding="utf-8")
    entries = _cut(native, "func")
    schemas = {name: parse(text)["func"] for name, text in entries.items()}
    listed = yaml.load(derivatives, Loader=_LOADER)
    texts = {each["name"]: yaml.safe_dump([each], sort_keys=False, width=1000).rstrip() for each in listed}
    return Source(entries, texts, schemas)


def parse(entry: str) -> dict[str, Any]:
    """An entry's text as what it says."""
    return dict(yaml.load(entry, Loader=_LOADER)[0])


def _cut(text: str, first: str) -> dict[str, str]:
    """Entries by operator: each begins at "- func: NAME(" and ends before the next; comments after it are dropped."""
    found: dict[str, str] = {}
    for entry in re.split(rf"^(?=- {first}:)", text, flags=re.M)[1:]:
        name = entry.partition(":")[2].partition("(")[0].strip()
        found[name] = re.sub(r"(?:\n(?:#[^\n]*|[ \t]*))*\Z", "", entry)
    return found
