"""The examples that are programs show what they are there to show."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).parents[2] / "examples"


def start(program, *words):
    command = [sys.executable, "-B", EXAMPLES / program, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process, code=0):
    """Its output, if it ends with this code."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    return out


def test_the_shop_oversells_without_a_lock_only(redis_url):
    out = said(start("inventory/inventory.py", redis_url))
    sold = dict(re.findall(r"^(no lock|lock) +sold +(\d+),", out, re.MULTILINE))
    assert int(sold["no lock"]) > 50 and sold["lock"] == "50", out


def test_the_balance_is_exact_by_version_and_under_a_lock_only():
    for how in "version", "lock":
        out = said(start("balance/balance.py", "--how", how, "--balance", "31", "--times", "3"))
        assert out == f"{how}: paid out 30, refused 14, left 1 of 31, exact\n"
    out = said(start("balance/balance.py", "--how", "none", "--balance", "31", "--workers", "4"), code=1)
    assert int(re.match(r"none: paid out (\d+), .* not exact$", out)[1]) > 31, out


def test_of_two_nodes_one_runs_in_each_period(redis_url, tmp_path):
    runs = tmp_path / "runs.txt"
    words = ["--url", redis_url, "--period", "1", "--for", "1.5", "--output", runs]
    nodes = [start("scheduled-job/scheduled_job.py", "--name", name, *words) for name in ("one", "another")]
    for node in nodes:
        said(node)
    instants = [line.split()[0] for line in runs.read_text().splitlines()]
    assert instants and len(set(instants)) == len(instants), instants
