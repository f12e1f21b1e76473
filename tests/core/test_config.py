from typing import Annotated, Literal

import pytest
from pydantic import Field

from textmill.core.config import Config, apply_overrides, parse_config
from textmill.core.errors import ProjectError


class Inner(Config):
    lr: float = Field(1e-4, gt=0)
    """The learning rate."""


class Outer(Config):
    name: str
    """A name."""
    train: Inner = Inner()
    """A table."""
    size: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    """A value of two kinds."""
    extra: Inner | None = None
    """A table that may be absent."""


def test_an_unknown_key_is_refused_with_the_nearest_name():
    with pytest.raises(ProjectError, match=r"unknown key 'train.lrr'.*Did you mean 'lr'"):
        parse_config(Outer, {"name": "a", "train": {"lrr": 1}}, "p.toml")


def test_an_unknown_key_in_an_optional_table_names_its_neighbours():
    with pytest.raises(ProjectError, match=r"'extra.x'.*Known: lr"):
        parse_config(Outer, {"name": "a", "extra": {"x": 1}}, "p.toml")


def test_a_value_out_of_range_names_key_and_value():
    with pytest.raises(ProjectError, match=r"'train.lr'.*greater than 0.*but got -1"):
        parse_config(Outer, {"name": "a", "train": {"lr": -1}}, "p.toml")


def test_a_value_of_two_kinds_is_one_fault_with_both_rules():
    with pytest.raises(ProjectError, match=r"key 'size' in .*'auto', or .*greater than.*got 0\. Change size"):
        parse_config(Outer, {"name": "a", "size": 0}, "p.toml")


def test_a_missing_key_is_named():
    with pytest.raises(ProjectError, match="'name' is needed"):
        parse_config(Outer, {}, "p.toml")


def test_all_faults_are_listed():
    with pytest.raises(ProjectError, match=r"2 faults: train\.lr, train\.b"):
        parse_config(Outer, {"name": "a", "train": {"lr": "x", "b": 1}}, "p.toml")


def test_a_config_cannot_be_changed():
    config = Inner()
    with pytest.raises(Exception, match="frozen"):
        config.lr = 1.0


def test_overrides_are_read_as_toml_and_else_as_text():
    table = apply_overrides({"train": {"lr": 1}}, ["train.lr=3e-5", "name=abc", "on=true", "l=[1, 2]"])
    assert table == {"train": {"lr": 3e-5}, "name": "abc", "on": True, "l": [1, 2]}


def test_overrides_leave_the_given_table_as_it_was():
    table = {"train": {"lr": 1}}
    apply_overrides(table, ["train.lr=2"])
    assert table == {"train": {"lr": 1}}


@pytest.mark.parametrize("override", ["train.lr", "=3", "name.x=1"])
def test_an_override_that_cannot_apply_is_refused(override):
    with pytest.raises(ProjectError):
        apply_overrides({"name": "a"}, [override])


def test_field_docstrings_become_descriptions():
    assert Inner.model_json_schema()["properties"]["lr"]["description"] == "The learning rate."
