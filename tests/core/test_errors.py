import pickle

import pytest

from textmill.core.errors import (
    DataError,
    GateRefused,
    RequestError,
    TextmillError,
    TrainingGaveUp,
    UserError,
    missing_extra,
    nearest,
)


def test_a_message_holds_rule_value_and_next_step():
    error = DataError("A label column must exist", got="'lable'", fix="Write label.")
    assert str(error) == "A label column must exist, but got 'lable'. Write label."


@pytest.mark.parametrize(
    ("kind", "code"),
    [(TextmillError, 1), (UserError, 2), (DataError, 2), (GateRefused, 3), (TrainingGaveUp, 4)],
)
def test_each_kind_has_its_exit_code(kind, code):
    assert kind("r", got="g", fix="f").exit_code == code


def test_an_error_keeps_its_parts_across_a_process_border():
    error = pickle.loads(pickle.dumps(DataError("rule", got="got", fix="fix")))
    assert isinstance(error, DataError)
    assert error.as_json() == DataError("rule", got="got", fix="fix").as_json()


def test_a_request_error_keeps_its_status_across_a_process_border():
    error = pickle.loads(pickle.dumps(RequestError("rule", got="got", fix="fix", status=413)))
    assert error.status == 413


def test_nearest_puts_the_likely_name_first():
    assert nearest("lerning_rate", ["learning_rate", "epochs"]).startswith("Did you mean 'learning_rate'?")


def test_nearest_lists_all_names_when_none_is_close():
    assert nearest("zzz", ["lr", "epochs"]) == "Known: epochs, lr."


def test_a_missing_extra_names_the_line_that_installs_it():
    assert "pip install 'textmill[track]'" in str(missing_extra("tensorboard", "track", "Writing events"))
