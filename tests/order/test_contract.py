"""What holds for every strategy."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.order.rows import as_lists, counts, difficulty_of, plan_of
from textmill.order.config import OrderConfig, Strategy
from textmill.order.sampler import BatchPlan

STRATEGIES = get_args(Strategy)
DRAWING = ("competence", "random-subset")
"""They draw with repetition at first."""

configs = st.builds(
    OrderConfig,
    strategy=st.sampled_from(STRATEGIES),
    ordered_share=st.sampled_from([0.01, 0.3, 0.7, 1.0]),
    dynamic=st.booleans(),
    competence_epochs=st.sampled_from([0.5, 1.0, 2.5]),
)
epochs = st.integers(0, 3)


def _rows(plan: BatchPlan, epoch: int) -> list[int]:
    return [row for batch in plan.plan_epoch(epoch) for row in batch.tolist()]


@given(configs, counts, epochs, st.integers(40, 200))
def test_every_row_comes_exactly_once_an_epoch_where_it_is_promised(config, per_class, epoch, max_tokens):
    plan = plan_of(config, per_class, max_tokens=max_tokens)
    rows = _rows(plan, epoch)
    assert len(rows) == sum(per_class)
    assert plan.num_reached(epoch) == len(set(rows))
    assert plan.schedule.reaches_all == (config.strategy not in DRAWING)
    if plan.schedule.reaches_all or epoch >= config.competence_epochs:
        assert sorted(rows) == list(range(sum(per_class)))


@given(configs, counts, epochs, st.integers(40, 200))
def test_the_token_budget_is_kept(config, per_class, epoch, max_tokens):
    plan = plan_of(config, per_class, max_tokens=max_tokens)
    batches = plan.plan_epoch(epoch)
    assert all(len(batch) * plan.lengths[batch].max() <= max_tokens for batch in batches)
    assert all(0 < len(batch) <= 16 for batch in batches)


@given(configs, counts, epochs)
def test_the_plan_is_a_pure_function_of_its_arguments(config, per_class, epoch):
    plan = plan_of(config, per_class, seed=3)
    plan.plan_epoch(epoch + 1)
    assert as_lists(plan.plan_epoch(epoch)) == as_lists(plan_of(config, per_class, seed=3).plan_epoch(epoch))


@given(configs, counts, epochs, st.integers(1, 5))
def test_the_shards_of_all_ranks_are_the_plan(config, per_class, epoch, world):
    plan = plan_of(config, per_class)
    shards = [plan.shard(rank, world).plan_epoch(epoch) for rank in range(world)]
    assert len({len(shard) for shard in shards}) == 1
    rows = [row for shard in shards for batch in shard for row in batch.tolist()]
    assert sorted(rows) == sorted(_rows(plan, epoch))
    whole = plan.plan_epoch(epoch)
    for rank, shard in enumerate(shards):
        full_rounds = len(whole) // world
        assert as_lists(shard[:full_rounds]) == as_lists(whole[rank::world][:full_rounds])
        assert all(len(b) * plan.lengths[b].max(initial=0) <= plan.max_tokens for b in shard)


@given(configs, counts, epochs)
def test_losses_change_the_plan_only_where_the_order_is_dynamic(config, per_class, epoch):
    plan = plan_of(config, per_class)
    num = sum(per_class)
    losses = np.random.default_rng(5).random(num)
    after = plan.with_difficulty(difficulty_of(num).after_epoch(losses))
    if not config.dynamic:
        assert as_lists(after.plan_epoch(epoch)) == as_lists(plan.plan_epoch(epoch))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_another_seed_gives_another_order(strategy):
    config = OrderConfig(strategy=strategy)
    first, second = (plan_of(config, [60, 60], seed=seed).plan_epoch(0) for seed in (0, 1))
    assert as_lists(first) != as_lists(second)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("per_class", [[1], [2], [1, 1], [200, 200, 1, 2]])
def test_classes_of_one_or_two_rows_end(strategy, per_class):
    plan = plan_of(OrderConfig(strategy=strategy), per_class)
    for epoch in range(3):
        for batch in plan.plan_epoch(epoch):
            assert len(set(batch.tolist())) > len(batch) // 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_rows_give_no_batches(strategy):
    assert plan_of(OrderConfig(strategy=strategy), [0]).plan_epoch(0) == []


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if each != "shuffle"])
def test_later_epochs_are_those_of_a_shuffle(strategy):
    plan = plan_of(OrderConfig(strategy=strategy), [50, 50])
    assert as_lists(plan.plan_epoch(0)) != as_lists(plan_of(OrderConfig(), [50, 50]).plan_epoch(0))
    for epoch in (1, 2):
        same = plan_of(OrderConfig(), [50, 50]).plan_epoch(epoch)
        assert as_lists(plan.plan_epoch(epoch)) == as_lists(same)
