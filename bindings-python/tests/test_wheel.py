"""The wheel as it leaves the house, read from the built file."""

import email
import re
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
(WHEEL,) = (Path(sys.prefix).parent / "wheel").glob("*.whl")
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
URLS = ["Changelog", "Documentation", "Homepage", "Issues", "Repository"]


@pytest.fixture(scope="module")
def wheel():
    with zipfile.ZipFile(WHEEL) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def test_it_has_both_licences_as_the_project_has_them(wheel, metadata):
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert sorted(metadata.get_all("License-File")) == LICENCES
    for licence in LICENCES:
        (name,) = (name for name in wheel.namelist() if name.endswith(f".dist-info/licenses/{licence}"))
        assert wheel.read(name) == (ROOT / licence).read_bytes()


def test_it_says_where_the_project_is(metadata):
    urls = dict(entry.split(", ") for entry in metadata.get_all("Project-URL"))
    assert sorted(urls) == URLS
    repository = re.search(r'^repository = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert repository and all(url.startswith(repository[1]) for url in urls.values()), urls


def test_it_names_the_versions_it_is_for(metadata):
    named = metadata.get_all("Classifier")
    minors = [int(one) for one in re.findall(r"Python :: 3\.(\d+)", "\n".join(named))]
    oldest = int(metadata["Requires-Python"].removeprefix(">=3."))
    assert minors == list(range(oldest, minors[-1] + 1)) and sys.version_info.minor in minors
    assert f"-cp3{oldest}-abi3-" in WHEEL.name


def test_it_has_the_package_and_nothing_else(wheel):
    names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    sources = (ROOT / "bindings-python" / "python").rglob("*.py*")
    package = {str(file.relative_to(ROOT / "bindings-python" / "python")) for file in sources if file.suffix != ".pyc"}
    assert set(names) == package | {"fencelock/py.typed", "fencelock/_native.abi3.so"}


def test_it_asks_for_no_newer_glibc_than_its_name_says(wheel):
    (named,) = set(re.findall(r"manylinux_2_(\d+)", WHEEL.name))
    asked = re.findall(rb"\0GLIBC_2\.(\d+)", wheel.read("fencelock/_native.abi3.so"))
    assert asked and max(int(minor) for minor in asked) <= int(named), WHEEL.name


def test_it_has_no_unwinder_of_its_own(wheel):
    # An interpreter that ends unwinds threads that wait in natives with the process's. Zig's own reports its errors so.
    module = wheel.read("fencelock/_native.abi3.so")
    assert b"\0libgcc_s.so.1\0" in module and b"libunwind: " not in module


@pytest.mark.full
def test_a_release_is_for_every_glibc_from_2_17_on():
    assert re.findall(r"manylinux_2_(\d+)", WHEEL.name) == ["17"]
