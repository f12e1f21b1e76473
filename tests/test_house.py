"""What holds for the house as a whole: the tree is told, imports are light, files stay small."""

import ast
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "textmill"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 450
HEAVY = ("torch", "transformers", "datasets", "onnxruntime", "pandas", "sklearn", "matplotlib", "starlette")


def readme_tree() -> str:
    """Return the README's annotated tree."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index("```text\ntextmill/") :]


def seconds_of(*arguments: str) -> float:
    """Return the median seconds of five runs of a Python command."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def test_the_readme_names_every_folder_and_top_module():
    parts = [path for path in PACKAGE.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"]
    names = [f"{path.name}/" if path.is_dir() else path.name for path in parts if path.name != "__init__.py"]
    missing = [name for name in names if f"  {name} " not in readme_tree()]
    assert not missing


def test_the_readme_names_only_what_is_there():
    inside = re.findall(r"^  (\S+?)/? ", readme_tree().split("```")[1], re.MULTILINE)
    assert inside
    assert [name for name in inside if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("module", ["textmill", "textmill.cli"])
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_help_answers_at_once():
    # 0.2 s on an idle machine of two cores, where an empty Python takes 0.02 s; a busy one is slower in both,
    # and 16 times the empty one was seen there.
    empty, help_ = seconds_of("-c", "pass"), seconds_of("-m", "textmill.cli", "--help")
    assert help_ < max(0.3, 20 * empty)


def test_no_file_is_too_long_to_read():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_every_module_says_what_it_is():
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in MODULES}
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_package_files_hold_nothing_but_their_docstring():
    # A package's import must load nothing; the version is the one name that is needed there.
    for path in PACKAGE.rglob("__init__.py"):
        body = ast.parse(path.read_text("utf-8")).body[1:]
        assert all(isinstance(node, ast.Assign) for node in body), path


def test_there_are_no_drawers():
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [str(path) for path in PACKAGE.rglob("*") if path.stem in drawers] == []


def test_nothing_below_the_command_line_prints():
    # terminal.py writes to the streams it is given; everything else reports to a Progress or a logger.
    printing = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                printing.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert printing == []


@pytest.mark.parametrize("script", ["bin/setup", "bin/test", "bin/demo", "bin/bench", ".ci/run"])
def test_scripts_are_sound_and_executable(script):
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_setup_refuses_an_unknown_extra_before_it_does_anything():
    done = subprocess.run(
        [str(ROOT / "bin/setup"), "no-such-extra"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no-such-extra" in done.stderr


def test_every_pin_is_exact_and_free_of_local_builds():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins == sorted(pins, key=lambda line: line.partition("==")[0])
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
