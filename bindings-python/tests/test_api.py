"""The public interface is the one in api.txt, so that a change of it is seen in a diff. FENCELOCK_WRITE=1 writes it anew."""

import ast
import os
from pathlib import Path

import fencelock

LIST = Path(__file__).parents[1] / "api.txt"


def public(body, indent=""):
    for item in body:
        name = getattr(item, "name", None) or getattr(getattr(item, "target", None), "id", "_")
        if name.startswith("_") and not (name.startswith("__") and name.endswith("__")):
            continue
        if isinstance(item, ast.AnnAssign):
            yield f"{indent}{ast.unparse(item)}"
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            kind = "async def" if isinstance(item, ast.AsyncFunctionDef) else "def"
            marks = "".join(f"@{ast.unparse(mark)} " for mark in item.decorator_list)
            result = f" -> {ast.unparse(item.returns)}" if item.returns else ""
            yield f"{indent}{marks}{kind} {name}({ast.unparse(item.args)}){result}"
        elif isinstance(item, ast.ClassDef):
            yield f"{indent}class {name}({', '.join(map(ast.unparse, item.bases))})"
            yield from public(item.body, indent + "    ")


def listed():
    # A file without an underscore is a module that users see.
    for file in sorted(Path(fencelock.__file__).parent.glob("[a-z]*.py")):
        yield f"# {file.stem}"
        yield from public(ast.parse(file.read_text()).body)


def test_the_interface_is_the_listed_one():
    lines = "".join(f"{line}\n" for line in listed())
    if os.environ.get("FENCELOCK_WRITE"):
        LIST.write_text(lines)
    assert LIST.read_text() == lines
