"""Facts about the `glassbox` command: what it prints in each format, and one line for what the user can mend."""

import argparse
import json
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from glassbox.__main__ import _inputs, main

MODULE = """
import torch

net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
make = lambda: torch.nn.Linear(4, 2)
number = 7
fails = torch.nn.Linear(5, 5)
words = torch.nn.Embedding(10, 4)


def broken():
    raise LookupError("no weights\\nhere")


class Asserts(torch.nn.Module):
    def forward(self, x):
        assert x.dim() == 3, "wrong\\nheight"


class Looks(torch.nn.Module):
    def forward(self, x):
        return {}["key"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of the user's own, in the current folder."""
    (tmp_path / "my_models.py").write_text(MODULE)
    (tmp_path / "fails_at_import.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    return "my_models"


def run(*words: str) -> int:
    return main(["xray", *words])


def test_a_table_in_three_formats(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("table", "add.Tensor") == 0
    text = capsys.readouterr().out
    assert re.search(r"^CPU +kernel +.*RegisterCPU", text, flags=re.MULTILINE)
    assert run("table", "add.Tensor", "--format", "md") == 0
    assert capsys.readouterr().out.startswith("| keys |")
    assert run("table", "add.Tensor", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["caption"].startswith("aten") and {"key", "kernel"} <= set(found["rows"][0])


def test_the_log_of_ones_own_model(here: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ops", f"{here}:net", "--input", "2x4") == 0
    ops = re.findall(r"= (aten\.[\w.]+)\(", capsys.readouterr().out)
    assert ops == ["aten.t.default", "aten.addmm.default", "aten.relu.default"]
    assert run("ops", f"{here}:make", "--input", "2x4", "--mode", "inference_mode") == 0
    assert re.findall(r"= (aten\.[\w.]+)\(", capsys.readouterr().out) == ["aten.linear.default"]


def test_inputs_of_other_dtypes(here: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ops", f"{here}:words", "--input", "2x3:int64") == 0
    assert "aten.embedding.default" in capsys.readouterr().out
    tensors = _inputs(argparse.Namespace(input=["50:int64", "9:int8", "9:bool", "9:bfloat16", "9:complex64", "9"]))
    assert [str(each.dtype)[6:] for each in tensors] == ["int64", "int8", "bool", "bfloat16", "complex64", "float32"]
    assert set(tensors[0].tolist()) <= set(range(10)) and tensors[0].unique().numel() > 2


def test_a_portrait_with_and_without_backward(here: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("portrait", f"{here}:net", "--input", "2x4", "--format", "md") == 0
    assert "addmm.default" in capsys.readouterr().out
    assert run("portrait", f"{here}:net", "--input", "2x4", "--train", "--format", "json") == 0
    ops = {row["op"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert {"aten.addmm.default", "aten.threshold_backward.default"} <= ops


def test_the_other_instruments_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("native-function", "add.out") == 0
    assert "ufunc" in capsys.readouterr().out
    assert run("derivative", "mul.Tensor", "--format", "md") == 0
    assert "grad" in capsys.readouterr().out
    assert run("cheat-sheet", "--format", "md") == 0
    sheet = capsys.readouterr().out
    assert sheet.index("PythonDispatcher") < sheet.index("AutocastCPU") < sheet.index("ADInplaceOrView")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("table", "ad.Tensor"), "there is no operator 'ad.Tensor'; did you mean"),
        (("table",), "required: op"),
        pytest.param(
            ("portrait", "resnet81"),
            "torchvision has no model 'resnet81'; names that it has are resnet",
            marks=pytest.mark.skipif(find_spec("torchvision") is None, reason="its models are torchvision's"),
        ),
        (("portrait", "my_models:net", "--input", "1x3xx2"), "--input '1x3xx2' is no shape"),
        (("ops", "my_models:nothing"), "'my_models:nothing' cannot be imported"),
        (("ops", "my_models:number"), "'my_models:number' is no torch.nn.Module"),
        (("ops", "my_models:fails", "--input", "2x4"), "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        (("cheat-sheet", "--format", "xml"), "invalid choice"),
        (("portrait", "my_models:Asserts", "--input", "2x4"), "AssertionError: wrong"),
        (("portrait", "my_models:Looks", "--input", "2x4", "--train"), "KeyError: 'key'"),
        (("ops", "my_models:Looks", "--input", "2x4"), "KeyError: 'key'"),
        (("ops", "my_models:broken"), "LookupError: no weights"),
        (("ops", "fails_at_import:net"), "'fails_at_import:net' cannot be imported (ZeroDivisionError: division"),
        (("portrait", "my_models:net", "--train", "--mode", "inference_mode"), "leave out --train or --mode inference"),
        (("portrait", "my_models:net", "--train", "--mode", "no_grad"), "leave out --train or --mode no_grad"),
        (("ops", "my_models:net", "--input", "2x4:int"), "RuntimeError: mat1 and mat2 must have the same dtype"),
        (("ops", "my_models:net", "--input", "2x4:integer"), "'2x4:integer' has no dtype of PyTorch"),
        (("ops", "my_models:net", "--input", "2x4:"), "'2x4:' has no dtype of PyTorch"),
        (("ops", "my_models:net", "--input", ":int64"), "':int64' is no shape"),
    ],
)
def test_what_the_user_can_mend_is_one_line(
    here: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and len(err.splitlines()) == 1
    assert torch.is_grad_enabled() and str(Path.cwd()) not in sys.path


def test_a_torchvision_model_that_refuses_its_input(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torchvision")
    assert run("portrait", "vit_b_16", "--input", "1x3x32x32") == 2
    assert capsys.readouterr().err == "AssertionError: Wrong image height! Expected 224 but got 32!\n"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m glassbox xray cheat-sheet | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 1
