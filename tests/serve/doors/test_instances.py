from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_a_pair_is_an_object_with_both_texts_in_any_order():
    body = b'{"instances": [{"text": "a", "text_pair": ""}, {"text_pair": "c", "text": "b"}]}'
    assert parse_instances(body, CONFIG, is_pairs=True) == [("a", ""), ("b", "c")]
    for odd in (
        b'{"instances": [{"text": "a", "text_pair": "b", "text": "c"}]}',
        b'{"instances": [[["a", "b"]]]}',
    ):
        with pytest.raises(RequestError, match=r"twice|must be a pair"):
            parse_instances(odd, CONFIG, is_pairs=True)
    for key in ("text", "text_pair"):
        pair = {"text": "a", "text_pair": "b", key: "x" * 21}
        with pytest.raises(RequestError, match=f'21 as the "{key}" of item 0'):
            parse_instances(json.dumps({"instances": [pair]}).encode(), CONFIG, is_pairs=True)


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


_TEXT = st.text(st.characters(codec=None, categories=None), max_size=25)
_KEY = st.sampled_from(["text", "text_pair", "instances", "extra", "\ud83d"])
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEY, inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(_VALUE, max_size=4) | _VALUE, st.booleans())
def test_any_json_is_read_whole_or_refused_and_never_cast(instances, is_pairs):
    body = json.dumps({"instances": instances}).encode()
    read = json.loads(body)["instances"]  # two halves of an emoji are one character then
    try:
        texts = parse_instances(body, CONFIG, is_pairs=is_pairs)
    except RequestError as err:
        refused = err
    else:
        refused = None
    if refused is not None:
        assert refused.status in (400, 413)
        json.loads(error_body(refused))
        return
    assert isinstance(read, list)
    assert len(texts) == len(read)
    for text, given_item in zip(texts, read, strict=True):
        if is_pairs:
            assert given_item == {"text": text[0], "text_pair": text[1]}
        else:
            assert given_item in (text, {"text": text})
