"""Files as a reader knows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from glassbox.xray._short_files import short_file

CELLS = """
from IPython.core.interactiveshell import InteractiveShell
from ipykernel.compiler import XCachingCompiler
InteractiveShell.compiler_class.default_value = XCachingCompiler  # a notebook's, which names a cell by its text
shell = InteractiveShell.instance()
shell.run_cell("from glassbox import xray; import torch", store_history=True)
cell = "copies = xray.hidden_copies(lambda: torch.ones(2, 3).t().reshape(6)); print(copies)"
for _ in range(2):
    shell.run_cell(cell, store_history=True)
"""


def test_a_cell_that_is_run_again_is_called_by_its_latest_number() -> None:
    done = subprocess.run([sys.executable, "-c", CELLS], capture_output=True, text=True, check=True)
    assert [number for number in ("In[1]", "In[2]", "In[3]") if number in done.stdout] == ["In[2]", "In[3]"]


def test_a_file_is_named_from_the_package_or_the_present_folder_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert short_file("/x/lib/python3.11/site-packages/torch/nn/modules/conv.py") == "torch/nn/modules/conv.py"
    file = str(tmp_path / "models" / "net.py")
    monkeypatch.chdir(tmp_path)
    assert short_file(file) == "models/net.py"
    monkeypatch.chdir(tmp_path / "..")
    assert short_file(file) == f"{tmp_path.name}/models/net.py"
