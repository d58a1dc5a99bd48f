"""pyproject.toml, constraints.txt and environment.yml say the same thing."""

import importlib.metadata
import re
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import course

ROOT = Path(course.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [Requirement(text) for text in PROJECT["dependencies"] + sum(EXTRAS.values(), [])]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
PINS = {canonicalize_name(name): pin for name, pin in course.Environment(ROOT).pins().items()}

# What torch pins itself, and what only one platform has.
UNPINNED = re.compile(r"nvidia-.*|cuda-.*|triton|pip|pytorch-glassbox")


def test_the_base_install_is_the_instruments_only() -> None:
    assert {Requirement(text).name for text in PROJECT["dependencies"]} == {"torch", "numpy", "PyYAML"}


@pytest.mark.parametrize("requirement", DIRECT, ids=lambda r: r.name)
def test_a_direct_dependency_has_a_pin_inside_its_range(requirement: Requirement) -> None:
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_line_of_the_constraints_is_an_exact_pin() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []
    assert len(lines) == len(PINS)


def test_all_that_the_dependencies_bring_is_pinned() -> None:
    waiting, seen = [(r.name, frozenset(r.extras)) for r in DIRECT], set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in importlib.metadata.requires(name) or []:
            need = Requirement(text)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                waiting.append((canonicalize_name(need.name), frozenset(need.extras)))
    names = {canonicalize_name(name) for name, _ in seen}
    assert {name for name in names if name not in PINS and not UNPINNED.fullmatch(name)} == set()


def test_this_environment_holds_the_pins() -> None:
    """What is tested is what is pinned."""
    # Only this folder: setuptools, once imported, puts other releases of its own on the path.
    found = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    here = {canonicalize_name(d.name): d.version.split("+")[0] for d in found}
    assert len(here) > 100
    off = {name: (here[name], pin) for name, pin in PINS.items() if name in here and here[name] != pin}
    assert off == {}


def test_the_range_of_torchvision_pairs_with_that_of_torch() -> None:
    def bounds(name: str) -> list[str]:
        (found,) = (r for r in DIRECT if r.name == name)
        return [str(Version(s.version)) for s in sorted(found.specifier, key=lambda s: Version(s.version))]

    pairs = list(zip(bounds("torch"), bounds("torchvision"), strict=True))
    assert len(pairs) == 2
    assert all(course.pair_fits(*pair) for pair in pairs)
    assert course.pair_fits(PINS["torch"], PINS["torchvision"])


def test_conda_brings_python_and_pip_and_leaves_the_rest_to_the_pins() -> None:
    assert CONDA["channels"][0] == "conda-forge"
    *own, pip = CONDA["dependencies"]
    assert [text.split()[0] for text in own] == ["python", "pip"]
    assert pip == {"pip": ["-c constraints.txt", "-e .[course]"]}
    assert "course" in EXTRAS


def test_conda_s_python_is_one_that_the_package_takes() -> None:
    python = Requirement(CONDA["dependencies"][0])
    takes = Requirement("python" + PROJECT["requires-python"])
    for minor in (11, 12, 13):
        assert f"3.{minor}" in python.specifier and f"3.{minor}" in takes.specifier
    assert "3.10" not in takes.specifier and "3.10" not in python.specifier
