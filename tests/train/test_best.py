from textmill.train.best import Best


def test_more_is_better_except_for_a_loss():
    first = Best().after(10, 1, 0.5, "accuracy")
    assert first.after(20, 2, 0.6, "accuracy").step == 20
    assert first.after(20, 2, 0.6, "loss").step == 10
    assert first.after(20, 2, 0.4, "loss").step == 20


def test_a_tie_keeps_the_earlier_and_counts_as_no_gain():
    first = Best().after(10, 1, 0.5, "f1_macro")
    second = first.after(20, 2, 0.5, "f1_macro")
    assert (second.step, second.num_without_gain) == (10, 1)
    assert second.after(30, 3, 0.7, "f1_macro").num_without_gain == 0


def test_where_nothing_can_judge_the_last_state_is_the_best():
    assert Best().after(10, 1, None, "loss").after(20, 2, None, "loss").step == 20
