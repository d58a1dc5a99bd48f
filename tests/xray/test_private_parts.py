"""Facts about PyTorch's private parts: one package of ours touches them, and each that is missing is one sentence."""

import ast
from pathlib import Path

import pytest
import torch

from glassbox import xray
from glassbox.xray import TorchInternalsError, _torch_internals, use_count

XRAY = Path(xray.__file__).parent
INSIDE = Path(_torch_internals.__file__).parent
# Attributes of tensors, storages and nodes by which PyTorch keeps what is nobody else's business.
OF_OBJECTS = {"_cdata", "_version", "_is_view", "_base", "_sequence_nr", "_schema", "_saved_self", "_raw_saved_self"}


def chain(node: ast.AST) -> str:
    """ "torch._C._dispatch_keys" for such an expression, "" for one that is no chain of names."""
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def private_uses(source: str) -> list[str]:
    """What a module's source takes of torch that has a leading underscore, by import or by attribute."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch" and not node.level:
            names = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.ImportFrom) and "_torch_internals" in (node.module or ""):
            found += [each.name for each in node.names if each.name == "private"]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names if each.name.split(".")[0] == "torch"]
        elif isinstance(node, ast.Attribute):
            name = chain(node)
            names = [name] if name.startswith("torch.") else []
            if node.attr == "private":
                found.append(ast.unparse(node))
            if node.attr in OF_OBJECTS:
                found.append(ast.unparse(node))
        found += [name for name in names if any(part.startswith("_") for part in name.split("."))]
    return found


def test_what_counts_as_private() -> None:
    source = "import torch\nfrom torch._C import x\nfrom torch.utils import y\ntorch.a._b(torch.c)\nt._version\n"
    assert sorted(private_uses(source)) == ["t._version", "torch._C.x", "torch.a._b"]
    source = "from ._torch_internals import private\nfrom ._torch_internals.access import private as p\na.private(x)\n"
    assert private_uses(source) == ["private", "private", "a.private"]


@pytest.mark.parametrize("path", sorted(XRAY.glob("*.py")), ids=lambda path: path.name)
def test_private_names_of_torch_stay_behind_one_package(path: Path) -> None:
    assert private_uses(path.read_text(encoding="utf-8")) == []


def test_a_missing_internal_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_storage_Use_Count")
    with pytest.raises(TorchInternalsError, match=r"has no torch\._C\._storage_Use_Count, which this instrument reads"):
        use_count(torch.zeros(3))
    with pytest.raises(TorchInternalsError, match=r"UntypedStorage\._cdata"):
        _torch_internals.storage_identity(object())
    with pytest.raises(TorchInternalsError, match=r"torch\._nowhere\.at_all"):
        _torch_internals.private("torch._nowhere.at_all")
