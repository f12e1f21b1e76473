import torch

from tests.toy import toy_classifier
from textmill.model.fresh import encoder_layers, renew_head, renew_layers


def test_only_the_last_layers_are_drawn_anew_and_the_seed_says_how():
    classifier, _ = toy_classifier()
    before = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    state = torch.get_rng_state()
    renew_layers(classifier, 1, seed=3)
    once = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    changed = {name for name, tensor in once.items() if not torch.equal(tensor, before[name])}
    assert changed
    assert all(".layer.1." in name for name in changed)
    assert any(name.endswith("query.weight") for name in changed)
    assert len(encoder_layers(classifier)) == 2
    renew_layers(classifier, 1, seed=3)
    assert all(torch.equal(tensor, once[name]) for name, tensor in classifier.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())


def test_only_the_head_is_drawn_anew():
    classifier, _ = toy_classifier(seed=0)
    other, _ = toy_classifier(seed=1)
    renew_head(classifier, seed=1)
    for name, tensor in classifier.head.state_dict().items():
        assert torch.equal(tensor, other.head.state_dict()[name])
