"""New weights for a part of a classifier: the head, the encoder's last layers.

Promise: the new weights are a pure function of the seed; no global random state is changed.
What is not covered: encoders whose layers are no list (none of those that transformers ships so far).
"""

from __future__ import annotations

import torch
from torch import nn

from textmill.core.seeds import stream_seed, torch_generator
from textmill.model.backbone import config_table
from textmill.model.classifier import Classifier


def renew_head(classifier: Classifier, seed: int) -> None:
    """Draw the head's weights anew, in place."""
    device = next(classifier.head.parameters()).device
    classifier.head.cpu().reset(torch_generator(seed, "head"))  # the draw must not depend on the device
    classifier.head.to(device)


def renew_layers(classifier: Classifier, num: int, seed: int) -> None:
    """Draw the weights of the encoder's last `num` layers anew, in place, as its architecture draws them."""
    layers = encoder_layers(classifier)
    assert 0 < num <= len(layers), f"{num} of {len(layers)} layers"
    initialise = classifier.encoder._init_weights
    assert callable(initialise), "only transformers' encoders can draw layers anew"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_seed(seed, "fresh layers"))
        for layer in layers[len(layers) - num :]:
            on = next(layer.parameters()).device
            layer.cpu()  # the draw must not depend on the device
            for module in layer.modules():
                # transformers leaves alone what is marked as loaded.
                for owner in (module, *module.parameters(recurse=False)):
                    if getattr(owner, "_is_hf_initialized", False):
                        owner._is_hf_initialized = False
                initialise(module)
            layer.to(on)


def encoder_layers(classifier: Classifier) -> nn.ModuleList:
    """Return the encoder's list of layers."""
    num = int(config_table(classifier.encoder)["num_hidden_layers"])
    lists = [m for m in classifier.encoder.modules() if isinstance(m, nn.ModuleList) and len(m) == num]
    assert lists, f"no list of {num} layers in {type(classifier.encoder).__name__}"
    return lists[0]
