import json

import pytest

from tests.conftest import write_toy_project
from textmill.core.errors import ProjectError
from textmill.project import ProjectConfig, load_project, project_schema


def test_a_folder_stands_for_its_project_file(tmp_path):
    path = write_toy_project(tmp_path, num_rows=4)
    assert load_project(tmp_path) == load_project(path)


def test_an_unknown_key_is_refused_with_the_nearest_name(tmp_path):
    path = write_toy_project(tmp_path, num_rows=4)
    path.write_text(path.read_text().replace("epochs", "epoch"))
    with pytest.raises(ProjectError, match=r"'train\.epoch'.*Did you mean 'epochs'"):
        load_project(path)


def test_a_setting_wins_over_the_file(tmp_path):
    path = write_toy_project(tmp_path, num_rows=4)
    config = load_project(path, ["train.lr=3e-5", "name=other", "gate.margin=0"]).config
    assert (config.train.lr, config.name, config.gate.margin) == (3e-5, "other", 0)


def test_the_resolved_file_gives_the_same_project_from_anywhere(tmp_path):
    project = load_project(write_toy_project(tmp_path / "a", num_rows=4), ["train.lr=3e-5"])
    elsewhere = tmp_path / "b" / "project.toml"
    elsewhere.parent.mkdir()
    elsewhere.write_text(project.as_toml())
    again = load_project(elsewhere)
    assert again.as_toml() == project.as_toml()
    assert again.config.data.train == str(tmp_path / "a" / "reviews.csv")
    assert again.store_root == project.store_root
    assert again.config.train == project.config.train


@pytest.mark.parametrize(
    ("content", "rule"),
    [("name = ", "must be TOML"), ("name = 'a'", "'data' is needed"), ("[data]\ntrain = 3", "'data.train'")],
)
def test_a_broken_file_is_one_clear_error(tmp_path, content, rule):
    path = tmp_path / "project.toml"
    path.write_text(content)
    with pytest.raises(ProjectError, match=rule):
        load_project(path)


def test_a_missing_file_names_the_verb_that_writes_one(tmp_path):
    with pytest.raises(ProjectError, match="textmill init"):
        load_project(tmp_path / "nothing.toml")


def test_a_name_that_could_leave_the_store_is_refused(tmp_path):
    path = write_toy_project(tmp_path, num_rows=4)
    with pytest.raises(ProjectError, match="'name'"):
        load_project(path, ["name='../x'"])


def test_every_key_has_a_description():
    def keys(schema, root, path=""):
        for name, field in schema.get("properties", {}).items():
            yield f"{path}{name}", field
            for branch in (field, *field.get("anyOf", [])):
                if "$ref" in branch:
                    inner = root["$defs"][branch["$ref"].rsplit("/", 1)[1]]
                    yield from keys(inner, root, f"{path}{name}.")

    schema = project_schema()
    described = dict(keys(schema, schema))
    assert "train.lr" in described
    assert [key for key, field in described.items() if "description" not in field] == []
    json.dumps(schema)


def test_every_key_has_a_default_except_the_data():
    needed = [name for name, field in ProjectConfig.model_fields.items() if field.is_required()]
    assert needed == ["data"]


def test_a_backbone_folder_is_found_beside_the_project_file(tmp_path):
    path = write_toy_project(tmp_path, num_rows=4)
    (tmp_path / "mine").mkdir()
    assert load_project(path, ["model.backbone=./mine"]).config.model.backbone == str(tmp_path / "mine")
    assert load_project(path, ["model.backbone=bert-base"]).config.model.backbone == "bert-base"


def test_a_file_as_windows_writes_it_is_read(tmp_path):
    path = write_toy_project(tmp_path, num_rows=4)
    plain = load_project(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_project(path) == plain
