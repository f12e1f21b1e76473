import pytest
import torch

from textmill.core.errors import ProjectError
from textmill.core.machine import has_bf16_units, num_cpus
from textmill.train.config import TrainConfig
from textmill.train.device import choose_hardware


def test_a_cpu_computes_in_fp32_on_all_processors_by_itself():
    found = choose_hardware(TrainConfig(device="cpu"))
    assert (found.device.type, found.precision, found.threads) == (
        "cpu",
        "bf16" if has_bf16_units() else "fp32",
        num_cpus(),
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ProjectError, match=r"train\.device.*'cuda'.*cpu"):
        choose_hardware(TrainConfig(device="cuda"))


def test_threads_and_random_state_are_given_back_also_after_an_error():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    found = choose_hardware(TrainConfig(device="cpu", threads=threads + 1))

    def fail_inside():
        with found.claimed():
            assert torch.get_num_threads() == threads + 1
            torch.rand(3)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail_inside()
    assert torch.get_num_threads() == threads
    assert torch.equal(state, torch.get_rng_state())


def test_autocast_is_bf16_only_on_request():
    left, right = torch.ones(2, 2), torch.ones(2, 2)
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        with choose_hardware(TrainConfig(device="cpu", precision=precision)).autocast():
            assert (left @ right).dtype == dtype
