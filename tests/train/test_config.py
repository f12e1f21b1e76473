import pytest

from textmill.core.config import parse_config
from textmill.core.errors import ProjectError
from textmill.train.config import TrainConfig


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochs", 0),
        ("lr", 0),
        ("lr", 2),
        ("batch_size", 0),
        ("max_tokens", 3),
        ("max_tokens", "many"),
        ("accumulate", 0),
        ("warmup_share", 1.0),
        ("label_smoothing", 1.0),
        ("clip_norm", 0),
        ("clip_norm", float("inf")),
        ("patience", 0),
        ("metric", "auc"),
        ("device", "tpu"),
        ("keep_checkpoints", 0),
        ("threads", 0),
        ("threads", 100_000),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_key(key, value):
    with pytest.raises(ProjectError, match=key):
        parse_config(TrainConfig, {key: value}, "project.toml")


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(ProjectError, match="warmup_share"):
        parse_config(TrainConfig, {"warmup_ratio": 0.1}, "project.toml")


def test_every_field_has_a_description():
    assert all(field.description for field in TrainConfig.model_fields.values())


def test_the_row_limit_follows_the_batch_size():
    assert TrainConfig(batch_size=16).row_limit == 32
    assert TrainConfig(batch_size=16, max_rows=20).row_limit == 20
