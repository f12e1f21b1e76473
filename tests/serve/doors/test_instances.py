from __future__ import annotations

import json

import pytest

from textmill.core.errors import RequestError
from textmill.serve.config import ServeConfig
from textmill.serve.doors.answer import error_body
from textmill.serve.doors.instances import parse_instances

CONFIG = ServeConfig(max_items=3, max_chars=20)


def _parse(body: object) -> list[str]:
    return parse_instances(body if isinstance(body, bytes) else json.dumps(body).encode(), CONFIG)


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ({"instances": ["good", "bad"]}, ["good", "bad"]),
        ({"instances": []}, []),
        ({"instances": [{"text": "good"}, "bad"]}, ["good", "bad"]),
        ({"instances": [""]}, [""]),
        (b'{"instances": ["\\ud83d\\ude00", "\xe5\xa5\xbd"]}', ["\U0001f600", "好"]),
    ],
)
def test_the_stated_form_is_read(body, texts):
    assert _parse(body) == texts


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "must be JSON"),
        (b"not json", 400, "must be JSON"),
        (b'{"instances": ["a"]} tail', 400, "must be JSON"),
        (b"\xff\xfe", 400, "UTF-8"),
        (b'{"instances": [NaN]}', 400, "NaN"),
        (b'{"instances": ["a"], "instances": ["b"]}', 400, "a key twice"),
        (b'{"instances": [{"text": "a", "text": "b"}]}', 400, "a key twice"),
        (b"[" * 100_000, 400, "nested"),
        (b'{"instances": ' + b"[" * 400 + b"]" * 400 + b"}", 400, "item 0"),
        (["a"], 400, "JSON object"),
        ({}, 400, "key instances"),
        ({"inputs": ["a"]}, 400, "key instances"),
        ({"instances": ["a"], "inputs": ["a"]}, 400, "inputs"),
        ({"instances": ["a"], "signature_name": "x"}, 400, "signature_name"),
        ({"instances": ["a"], "\ud83d": 1}, 400, "ud83d"),
        ({"instances": "good film"}, 400, "good film"),
        ({"instances": {"text": "a"}}, 400, "must be a list"),
        ({"instances": [["good", "film"]]}, 400, "item 0"),
        ({"instances": ["a", 5]}, 400, "5 in item 1"),
        ({"instances": [None]}, 400, "null in item 0"),
        ({"instances": [True]}, 400, "true in item 0"),
        ({"instances": [{"text": "a", "extra": 1}]}, 400, "item 0"),
        ({"instances": [{"text": 5}]}, 400, "item 0"),
        ({"instances": ["a"] * 4}, 413, "at most 3"),
        ({"instances": ["a" * 21]}, 413, "21 in item 0"),
    ],
)
def test_every_other_form_is_refused_with_its_reason(body, status, said):
    with pytest.raises(RequestError) as caught:
        _parse(body)
    assert caught.value.status == status
    assert said in str(caught.value)
    answer = json.loads(error_body(caught.value))
    assert set(answer["error"]) == {"rule", "got", "fix"}
    assert answer["message"] == str(caught.value)
