"""The package as it is installed: types, documentation, options."""

import ast
import doctest
import importlib
import inspect
import json
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fencelock
from fencelock import _native

MODULES = [f"fencelock.{found.name}" for found in pkgutil.iter_modules(fencelock.__path__)]


@pytest.mark.parametrize("module", ["fencelock", *MODULES])
def test_the_examples_in_the_documentation_run(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_readme_runs():
    readme = Path(__file__).parents[1] / "README.md"
    assert doctest.testfile(str(readme), module_relative=False).failed == 0


ROOT = Path(__file__).parents[2]
PAGES = [page for folder in ("tutorial", "how-to") for page in sorted((ROOT / "docs" / folder).glob("*.md"))]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_the_projects_documentation_runs(page, redis_url):
    blocks = [block.split("```")[0] for block in page.read_text().split("```python\n")[1:]]
    assert blocks or page in PAGES
    for block in blocks:
        exec(compile(block.replace("redis://127.0.0.1", redis_url), page.name, "exec"), {})


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


def said(definition):
    """The parameters of a function in a stub: names, and whether they may be left out."""
    plain, left_out = definition.args.args, len(definition.args.defaults)
    given = [(argument.arg, number >= len(plain) - left_out) for number, argument in enumerate(plain)]
    return [parameter for parameter in given if parameter[0] not in ("self", "cls")]


def had(function):
    """The same of what the module has."""
    parameters = inspect.signature(function).parameters.values()
    given = [(parameter.name, parameter.default is not parameter.empty) for parameter in parameters]
    return [parameter for parameter in given if parameter[0] not in ("self", "cls")]


def test_the_stub_of_the_native_module_says_what_it_has():
    stub = ast.parse((Path(fencelock.__file__).parent / "_native.pyi").read_text()).body
    public = lambda names: {name for name in names if not name.startswith("_")}  # noqa: E731
    functions = {one.name: one for one in stub if isinstance(one, ast.FunctionDef)}
    classes = {one.name: {member.name: member for member in one.body} for one in stub if isinstance(one, ast.ClassDef)}
    assert public(vars(_native)) == functions.keys() | classes.keys()
    for name, function in functions.items():
        assert said(function) == had(getattr(_native, name)), name
    for name, members in classes.items():
        kind = getattr(_native, name)
        assert public(vars(kind)) == public(members), name
        for member, function in members.items():
            if callable(found := getattr(kind, member)) and not member.startswith("_"):
                assert said(function) == had(found), f"{name}.{member}"
            assert callable(found) != any(isinstance(by, ast.Name) and by.id == "property" for by in function.decorator_list)
        if "__new__" in members:
            assert said(members["__new__"]) == had(kind), name


SUBINTERPRETER = """
import sys
if sys.version_info < (3, 13):
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
    run = interpreters.run_string
else:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
    run = interpreters.exec
if sys.argv[1] == "after":
    import fencelock
refused = "try:\\n    import fencelock\\nexcept ImportError as error:\\n    print(error, flush=True)"
run(other, refused)
import fencelock
with fencelock.connect("memory:") as client, client.lock("x") as guard:
    print(guard.is_held)
"""
"""Imports the package in an interpreter beside the main one, and in that one before or after."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interpreter_beside_the_main_one_is_refused(when):
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", SUBINTERPRETER, when], capture_output=True, text=True, timeout=30)
    why, held = ended.stdout.splitlines()
    assert "main interpreter" in why and held == "True" and ended.returncode == 0, ended


WRONG = ["", "localhost", "reddis://user:s3cr3t@host", "http://user:s3cr3t@host", "redis:/host", "redis:host:6379", "redis+unix:"]
WRONG += ["redis://user:s3cr3t@host:port", "redis+sentinel://user:s3cr3t@host", "redis+cluster://host/3", "redis://a,b"]
WRONG += ["etcd://user:s3cr3t@", "zookeeper://user:s3cr3t@a,b/x//y", "postgres://user:s3cr3t@host", "postgresql://:s3cr3t@host/db", "mysql://user:s3cr3t@host"]
WRONG += ["redlock://user:s3cr3t@a,b", "redlock://a,,b", "sqlite:", "sqlite://host/locks.db", "memory://host"]


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_url_is_refused_before_anything_is_connected(url):
    with pytest.raises(fencelock.InvalidArgumentError) as told:
        fencelock.connect(url)
    assert told.value.code == "invalid" and "s3cr3t" not in f"{told.value} {told.value!r}"


ERRORS = [kind for kind in vars(fencelock).values() if isinstance(kind, type) and issubclass(kind, fencelock.FencelockError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_reaches_another_process_whole(kind):
    error = kind("what to do", True, {"name": "orders:42"})
    came = pickle.loads(pickle.dumps(error))
    assert type(came) is kind and str(came) == str(error) == "what to do"
    assert (came.code, came.message, came.retryable, came.fields) == (kind.code, "what to do", True, {"name": "orders:42"})


@pytest.mark.full
def test_the_wheel_keeps_to_the_stable_abi():
    (wheel,) = (Path(sys.prefix).parent / "wheel").glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    audit = [sys.executable, "-m", "abi3audit", "--strict", "--report", str(wheel)]
    audited = subprocess.run(audit, capture_output=True, text=True)
    report = json.loads(audited.stdout)["specs"]
    assert audited.returncode == 0 and report, audited.stderr


def test_every_code_has_a_class():
    errors = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text()
    codes = re.findall(r"^\| `(\w+)` \|", errors, re.MULTILINE)
    assert sorted(codes) == sorted(kind.code for kind in ERRORS if kind is not fencelock.FencelockError)


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


# As on Windows.
WITHOUT_FORK = """
import os
del os.register_at_fork
import fencelock
with fencelock.connect("memory:") as client, client.lock("orders:42") as guard:
    print(guard.is_held)
"""


def test_it_runs_where_there_is_no_fork():
    ended = subprocess.run([sys.executable, "-c", WITHOUT_FORK], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "True\n", ended.stderr
