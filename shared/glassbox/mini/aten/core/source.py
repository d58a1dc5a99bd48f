"""Generated code: functions made of text that can be read, stepped through and shown in a traceback (PyTorch: torchgen).

What the dispatcher needs per operator (a call, an Autograd kernel, a method) follows from its schema, so it is written
by the module that knows the rule and compiled here once. The text is registered with linecache, so inspect.getsource
and tracebacks show it as if it lay in a file.
"""

import linecache
from typing import Any

from ...c10.dtype import int64


def compile_source(text: str, name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Runs `text`, whose file shall be called <glassbox.mini: name>, in `namespace` and returns the namespace."""
    filename = f"<glassbox.mini: {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace.setdefault("long", int64)
    exec(compile(text, filename, "exec"), namespace)
    return namespace
