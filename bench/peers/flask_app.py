"""A careful Flask + torch service: the usual way to put a classifier behind HTTP.

    MODEL_FOLDER=... TORCH_THREADS=1 gunicorn -k gthread bench.peers.flask_app:app

Same model folder, same body and answer as ours; `inference_mode`, padding to the text's own length,
keep-alive. One text is computed at a time, since nothing in Flask batches.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from flask import Flask, Response, jsonify, request
from transformers import AutoTokenizer

from textmill.model.files import load

FOLDER = Path(os.environ["MODEL_FOLDER"])
torch.set_num_threads(int(os.environ["TORCH_THREADS"]))
classifier, own_tokenizer = load(FOLDER)
MAX_LENGTH = own_tokenizer.max_length
tokenizer = AutoTokenizer.from_pretrained(str(FOLDER))
app = Flask(__name__)


@app.post("/v1/models/reviews:predict")
def predict() -> Response:
    """Answer one request."""
    texts = request.get_json()["instances"]
    encoded = tokenizer(texts, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
    with torch.inference_mode():
        logits = classifier(encoded["input_ids"], encoded["attention_mask"], encoded.get("token_type_ids"))
        scores = torch.softmax(logits, dim=-1).tolist()
    labels = classifier.labels
    predictions = [
        {"label": labels[row.index(max(row))], "scores": dict(zip(labels, row, strict=True))}
        for row in scores
    ]
    answer = jsonify({"predictions": predictions})
    answer.headers["X-Model-Version"] = "1"
    return answer
