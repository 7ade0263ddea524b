"""The package as it is installed: types, documentation, options."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fencelock

MODULES = [f"fencelock.{found.name}" for found in pkgutil.iter_modules(fencelock.__path__)]


@pytest.mark.parametrize("module", ["fencelock", *MODULES])
def test_the_examples_in_the_documentation_run(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_readme_runs():
    readme = Path(__file__).parents[1] / "README.md"
    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_the_projects_readme_runs():
    text = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_shop_oversells_without_a_lock_only(redis_url):
    program = Path(__file__).parents[2] / "examples" / "inventory" / "inventory.py"
    ended = subprocess.run([sys.executable, program, redis_url], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    sold = dict(re.findall(r"^(no lock|lock) +sold +(\d+),", ended.stdout, re.MULTILINE))
    assert int(sold["no lock"]) > 50 and sold["lock"] == "50", ended.stdout


def test_the_package_is_typed_completely():
    verify = [sys.executable, "-m", "pyright", "--verifytypes", "fencelock", "--ignoreexternal"]
    # It looks for the package where the first python of the path looks.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    checked = subprocess.run(verify, capture_output=True, text=True, cwd="/", env=environment)
    assert checked.returncode == 0 and "completeness score: 100%" in checked.stdout, checked.stdout


def test_the_sources_are_typed_strictly():
    project = Path(__file__).parents[1]
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--project", str(project)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_the_options_are_those_of_the_table():
    generator = Path(__file__).parents[1] / "generate_options.py"
    checked = subprocess.run([sys.executable, str(generator), "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_everything_public_is_documented():
    public = [getattr(fencelock, name) for name in fencelock.__all__]
    bare = [
        f"{kind.__name__}.{name}"
        for kind in public
        if isinstance(kind, type)
        for name, member in vars(kind).items()
        if not name.startswith("_") and callable(member) and not getattr(member, "__doc__", None)
    ]
    assert not bare
