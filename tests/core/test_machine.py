import os

from textmill.core.machine import describe_machine, num_cpus


def test_no_more_processors_are_counted_than_the_process_may_use():
    assert 1 <= num_cpus() <= len(os.sched_getaffinity(0))


def test_the_machine_is_described_in_plain_values():
    assert all(isinstance(value, str | int | float) for value in describe_machine().values())
