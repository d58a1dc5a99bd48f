"""Facts about notes(): five things from this machine, whole files, nothing half written."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch
from torch import nn

from glassbox import start, xray
from glassbox.xray import take_home


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> take_home.Notes:
    folder = tmp_path_factory.mktemp("home") / "new" / "folder"
    x = torch.arange(6.0).view(2, 3)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    return xray.notes(folder, tensors={"x": x, "row": x[1]}, model=model, inputs=(x,))


def test_every_file_is_there_and_named(written: take_home.Notes) -> None:
    names = [path.name for path, _ in written.files]
    assert names == [
        *("storage.svg", "dispatch_keys.md", "interceptor.py", "call_path.md", "call_path.svg"),
        *("operators.md", "operators.svg", "README.md"),
    ]
    assert sorted(names) == sorted(path.name for path in written.folder.iterdir())
    index = (written.folder / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((.*?)\)", index) == names[:-1]
    assert torch.__version__ in index
    assert written.rows()[1]["file"] == "dispatch_keys.md" and written.left_out == ()


def test_what_they_hold_is_of_this_machine(written: take_home.Notes) -> None:
    def read(name: str) -> str:
        return (written.folder / name).read_text(encoding="utf-8")

    assert read("dispatch_keys.md") == xray.cheat_sheet().to_markdown().rstrip("\n") + "\n"
    assert "add_Tensor" in read("call_path.md")
    assert "addmm.default" in read("operators.md") and "relu.default" in read("operators.md")
    for name in ("storage.svg", "call_path.svg", "operators.svg"):
        text = "".join(ET.fromstring(read(name)).itertext())
        assert {"storage.svg": "row", "call_path.svg": "TensorIterator", "operators.svg": "addmm.default"}[name] in text


def test_the_interceptor_runs_by_itself(written: take_home.Notes) -> None:
    done = subprocess.run(
        [sys.executable, written.folder / "interceptor.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "aten.add.Tensor((2, 3), (3,)) -> (2, 3)",
        "aten.relu.default((2, 3),) -> (2, 3)",
        "aten.sum.default((2, 3),) -> ()",
    ]


def test_the_files_are_those_that_the_start_page_looks_for(written: take_home.Notes) -> None:
    made = {path.name for path, _ in written.files} | {"resnet18.md"}
    assert {file for _, file, _ in start.KEEPSAKES} <= made


def test_without_a_model_it_is_resnet18_or_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    found = xray.notes(tmp_path)
    assert found.left_out == (
        "resnet18.md is left out: torchvision is not installed; give model= and inputs= instead.",
    )
    assert found.left_out[0] in str(found) and not list(tmp_path.glob("resnet18*"))


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file; give the name of a folder"):
        xray.notes(file)
    with pytest.raises(ValueError, match="a model needs inputs"):
        xray.notes(tmp_path / "other", model=nn.Linear(2, 2))
    assert file.read_text() == "mine" and not (tmp_path / "other").exists()


def test_a_file_is_replaced_whole_or_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.md"
    take_home._write(path, "old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        take_home._write(path, "new")
    assert path.read_text() == "old\n" and list(tmp_path.iterdir()) == [path]
