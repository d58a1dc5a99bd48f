"""The operators' calls by name: ops.add_Tensor(a, b) for add.Tensor (PyTorch: at::, at::_ops).

For code inside the framework: every argument in the schema's order, no Python conveniences. A name is looked up at its
first use and then is a plain attribute of this module.
"""

from collections.abc import Callable
from typing import Any

from .core.dispatcher import dispatcher


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    for (_, overload), op in list(dispatcher.operators.items()):
        if op.schema.namespace == "aten" and name == (
            f"{op.schema.base}_{overload}" if overload else op.schema.base
        ):
            globals()[name] = op.call
            return op.call
    raise AttributeError(f"no operator is called {name}")
