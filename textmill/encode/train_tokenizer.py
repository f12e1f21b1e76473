"""New tokenizers from the user's own text: byte-level BPE, WordPiece, Unigram.

They are for encoders from scratch (`[model.architecture]`): a pretrained encoder has one vector for
each token of its own tokenizer, and with another tokenizer it reads noise.

Promises: the same texts and size give the same tokenizer.json for bpe and wordpiece (not for unigram: the
library adds up in the order of a hash table, so that some pieces and scores differ from run to run; keep
the file); the trained vocabulary has at most the size asked for (fewer where the text does not have as many
pieces); rows are framed and padded as BERT does (WordPiece) or RoBERTa (BPE, Unigram).
- `bpe`: Sennrich et al. (2016) over bytes as in GPT-2 (Radford et al. 2019); loses nothing, knows no UNK.
- `wordpiece`: Schuster and Nakajima (2012) in BERT's form, case kept, each Han character by itself.
- `unigram`: Kudo (2018), with NFKC and a mark for blanks as in SentencePiece.
What is not covered: adding tokens to a tokenizer that belongs to weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from textmill.core.errors import DataError, ModelError, nearest
from textmill.core.files import write_atomic, write_json

Kind: TypeAlias = Literal["bpe", "wordpiece", "unigram"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_BERT_NAMES = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
_ROBERTA_NAMES = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
_SMALLEST = 300  # 256 bytes, the special tokens and a few merges


def train_tokenizer(kind: Kind, vocab_size: int, texts: Iterable[str], folder: Path) -> Path:
    """Train a tokenizer and write it.

    Args:
        kind: bpe, wordpiece or unigram.
        vocab_size: tokens at most, special ones included; at least 300.
        texts: what it learns from.
        folder: gets tokenizer.json and tokenizer_config.json; made where missing.

    Returns:
        The folder, which `model.backbone` can name beside `[model.architecture]`.

    Raises:
        ModelError: an unknown kind or a vocabulary that is too small.
        DataError: a text that has nothing to learn from.
    """
    if kind not in KINDS:
        raise ModelError("A tokenizer's kind must be known", got=repr(kind), fix=nearest(kind, KINDS))
    if vocab_size < _SMALLEST:
        raise ModelError(
            f"A vocabulary must have at least {_SMALLEST} tokens",
            got=str(vocab_size),
            fix="8000 is a usual size for one language.",
        )
    names = _BERT_NAMES if kind == "wordpiece" else _ROBERTA_NAMES
    known = [text for text in texts if text.strip()]
    make = {"bpe": _bpe, "wordpiece": _wordpiece, "unigram": _unigram}[kind]
    try:
        tokenizer = make(known, vocab_size, names)
    except Exception as err:
        # The Rust side raises plain Exception: no text, or more characters than the vocabulary has room for.
        raise DataError(
            f"A {kind} tokenizer must be able to learn {vocab_size} tokens from the text",
            got=f"{len(known)} texts ({str(err)[:200]})",
            fix="Give it more rows, or a larger vocabulary.",
        ) from err
    tokenizer.post_processor = _framing(names, tokenizer)
    write_atomic(folder / "tokenizer.json", tokenizer.to_str())
    table = {"tokenizer_class": "PreTrainedTokenizerFast", **names, "mask_token": _mask(names)}
    write_json(folder / "tokenizer_config.json", table)
    return folder


def _mask(names: dict[str, str]) -> str:
    return "[MASK]" if names is _BERT_NAMES else "<mask>"


def _special(names: dict[str, str]) -> list[str]:
    order = ("pad_token", "unk_token", "cls_token", "sep_token")
    return [*(names[name] for name in order), _mask(names)]


def _bpe(texts: list[str], vocab_size: int, names: dict[str, str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=_special(names),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _wordpiece(texts: list[str], vocab_size: int, names: dict[str, str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=names["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    # The library numbers the pieces "##x" in the order of a hash table, and ties between merges go by
    # number: two runs would differ. Given as special tokens they have fixed numbers.
    inner = [f"##{char}" for char in sorted(_inner_characters(tokenizer, texts))]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=[*_special(names), *inner], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    plain = Tokenizer(models.WordPiece(tokenizer.get_vocab(), unk_token=names["unk_token"]))
    plain.normalizer, plain.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    plain.decoder = tokenizer.decoder
    plain.add_special_tokens(_special(names))
    return plain


def _inner_characters(tokenizer: Tokenizer, texts: list[str]) -> set[str]:
    """Return the characters that stand in a word after its first."""
    found: set[str] = set()
    for text in texts:
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text)):
            found.update(word[1:])
    return found


def _unigram(texts: list[str], vocab_size: int, names: dict[str, str]) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    blanks = normalizers.Replace(Regex(r"\s+"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), blanks])
    # Marks stand alone: without that a Chinese sentence is one word, and training takes many times longer.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size,
        special_tokens=_special(names),
        unk_token=names["unk_token"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _framing(names: dict[str, str], tokenizer: Tokenizer) -> processors.PostProcessor:
    begin, end = names["cls_token"], names["sep_token"]
    between = end if names is _BERT_NAMES else f"{end} {end}"
    pair = f"{begin} $A {between} $B:1 {end}:1" if names is _BERT_NAMES else f"{begin} $A {between} $B {end}"
    ids = [(name, _id_of(tokenizer, name)) for name in (begin, end)]
    return processors.TemplateProcessing(single=f"{begin} $A {end}", pair=pair, special_tokens=ids)


def _id_of(tokenizer: Tokenizer, name: str) -> int:
    """Return the id of a special token, which training has put into the vocabulary."""
    found = tokenizer.token_to_id(name)
    assert found is not None, f"{name} is among the special tokens"
    return int(found)
