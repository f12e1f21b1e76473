import subprocess
import sys

import numpy as np

from textmill.core.seeds import numpy_generator, stream_seed, torch_generator


def test_streams_of_one_seed_differ():
    assert stream_seed(1, "order", 0) != stream_seed(1, "order", 1) != stream_seed(1, "head")


def test_a_stream_is_the_same_in_every_process():
    program = "from textmill.core.seeds import stream_seed; print(stream_seed(7, 'order', 3))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{stream_seed(7, 'order', 3)}\n"}


def test_generators_leave_the_global_ones_alone():
    import torch

    before_numpy, before_torch = np.random.get_state()[1].copy(), torch.get_rng_state()
    numpy_generator(1, "a").random(5)
    torch.rand(5, generator=torch_generator(1, "a"))
    assert (np.random.get_state()[1] == before_numpy).all()
    assert torch.equal(torch.get_rng_state(), before_torch)
