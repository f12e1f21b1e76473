"""The examples of docs/integrations.md, executed."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.integrations.parts import rows, tiny_bert
from textmill.core.seeds import torch_generator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
TRAINER, PLAIN = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


class Encoder(nn.Module):
    """One transformer layer, and the mean over its tokens."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(64, 32)
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)

    def forward(self, ids):
        return self.layer(self.words(ids)).mean(1)


class Small(nn.Module):
    """An encoder and a head of three layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.encoder = Encoder()
        layers = [nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)]
        self.head = nn.Sequential(*layers)

    def forward(self, ids):
        return self.head(self.encoder(ids))


def plain_loop(lr, num=60):
    rng = torch_generator(0, "batches")
    batches = []
    for _ in range(num):
        targets = torch.randint(0, 2, (16,), generator=rng)
        ids = torch.randint(20, 60, (16, 8), generator=rng)
        ids[:, 3] = 10 + targets
        batches.append((ids, targets))
    model = Small()
    names = {
        "torch": torch,
        "batches": batches,
        "model": model,
        "lr": lr,
        "optimizer": torch.optim.AdamW(model.parameters(), lr=lr),
    }
    exec(PLAIN, names)
    return names


def test_the_plain_loop_learns_in_peace():
    names = plain_loop(lr=0.002)
    assert names["step"] == 60
    assert names["guard"].verdict().kind == "healthy"


def test_the_plain_loop_stops_with_a_sentence(capsys):
    names = plain_loop(lr=0.3)
    assert names["step"] <= 40
    assert names["guard"].verdict().sentence in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
@pytest.mark.parametrize(("lr", "kind"), [(0.1, "never-left"), (2e-3, "healthy")])
def test_the_trainer_example_tells_what_it_came_to(tmp_path, capsys, lr, kind):
    dataset = rows(640)
    exec(
        TRAINER,
        {
            "texts": [" ".join(str(i) for i in row["input_ids"]) for row in dataset],
            "labels": [row["labels"] for row in dataset],
            "lengths": [8] * len(dataset),
            "model": tiny_bert(),
            "folder": str(tmp_path),
            "lr": lr,
            "dataset": dataset,
        },
    )
    assert capsys.readouterr().out.splitlines()[-1].startswith(kind)
