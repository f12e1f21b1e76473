"""The pages speak of verbs, options, keys and files that exist."""

import re
import shlex
from pathlib import Path

import click
import pytest
import typer
from pydantic import BaseModel

from textmill.cli import app
from textmill.core.config import parse_config
from textmill.project import ProjectConfig

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path for path in ROOT.rglob("*.md") if not set(path.parts) & {".venv", "demo", "node_modules"})
TABLES = "|".join(ProjectConfig.model_fields)


def blocks(language: str) -> list[tuple[str, str]]:
    """Return (page, code) of all code blocks of a language."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        code = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        found += [(str(page.relative_to(ROOT)), each) for each in code]
    return found


def commands() -> list[str]:
    """Return every `textmill ...` line of the pages' shell blocks, without its comment."""
    lines = [line for _, code in blocks("sh") for line in code.splitlines()]
    return sorted({line.partition(" #")[0].strip() for line in lines if line.startswith("textmill ")})


@pytest.mark.parametrize("line", commands())
def test_a_command_in_the_pages_is_understood(line):
    command: click.Command = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    name = "textmill"
    while isinstance(command, click.Group):
        name = words.pop(0)
        assert name in command.commands, line
        command = command.commands[name]
    # Parsing alone: it fails on an unknown option, a missing argument or a value of a wrong type.
    command.make_context(name, words, resilient_parsing=False)


@pytest.mark.parametrize(("page", "code"), blocks("toml"))
def test_a_project_file_in_the_pages_is_one(page, code):
    import tomllib

    parse_config(ProjectConfig, tomllib.loads(code), page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_key_in_the_pages_exists(page):
    for dotted in re.findall(rf"`((?:{TABLES})\.[a-z_.]+)(?: = [^`]*)?`", page.read_text(encoding="utf-8")):
        kind: type[BaseModel] = ProjectConfig
        if re.search(r"\.(py|toml|json|jsonl|html|md)$", dotted):
            continue
        for part in dotted.split("."):
            assert part in kind.model_fields, f"{page.name}: {dotted}"
            inner = kind.model_fields[part].annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                kind = inner


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_file_of_the_house_in_the_pages_exists(page):
    text = page.read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"`(textmill/[a-z_/]+\.py)`", text) if not (ROOT / name).exists()]
    assert missing == []
