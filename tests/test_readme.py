"""The READMEs' Python runs and prints what it says; both languages say the same."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh-CN.md")


def blocks(name: str, language: str) -> list[str]:
    """Return the code blocks of one language, in order."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def headings(name: str) -> list[int]:
    """Return the levels of all headings outside code blocks."""
    text = re.sub(
        r"^```.*?^```$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]


def verbs(name: str) -> list[str]:
    """Return the verbs in the first column of the table of verbs."""
    cells = re.findall(r"^\| (`.*?) \|", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return [verb for cell in cells for verb in re.findall(r"`([a-z ]+)`", cell)]


@pytest.mark.slow
def test_the_example_prints_what_the_readme_says(tmp_path):
    code = blocks("README.md", "python")[0]
    printed = blocks("README.md", "text")[0]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_the_example_has_15_lines_beside_its_imports():
    assert len(blocks("README.md", "python")[0].splitlines()) <= 18


@pytest.mark.parametrize("language", ["sh", "python", "text"])
def test_both_languages_show_the_same_code(language):
    first, second = (blocks(name, language) for name in READMES)
    assert first
    assert first == second


def test_both_languages_have_the_same_headings():
    first, second = (headings(name) for name in READMES)
    assert first == second


def test_both_languages_name_the_same_verbs():
    first, second = (verbs(name) for name in READMES)
    assert first
    assert first == second


def test_the_table_of_figures_is_the_one_made_from_the_results():
    done = subprocess.run(
        [sys.executable, "bench/readme.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", "docs/README.md"])
def test_links_lead_to_files(name):
    page = ROOT / name
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing
