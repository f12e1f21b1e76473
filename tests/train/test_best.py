from textmill.train.best import Best


def test_more_is_better_except_for_a_loss():
    first = Best().after(10, 1, 0.5, "accuracy")
    assert first.after(20, 2, 0.6, "accuracy").step == 20
    assert first.after(20, 2, 0.6, "loss").step == 10
    assert first.after(20, 2, 0.4, "loss").step == 20


def test_a_tie_without_a_loss_keeps_the_earlier_and_counts_as_no_gain():
    first = Best().after(10, 1, 0.5, "f1_macro")
    second = first.after(20, 2, 0.5, "f1_macro")
    assert (second.step, second.num_without_gain) == (10, 1)
    assert second.after(30, 3, 0.7, "f1_macro").num_without_gain == 0


def test_of_equal_figures_the_lower_validation_loss_is_the_better_state_but_no_gain():
    first = Best().after(10, 1, 0.5, "f1_macro", 0.6)
    second = first.after(20, 2, 0.5, "f1_macro", 0.4)
    assert (second.step, second.epoch, second.num_without_gain) == (20, 2, 1)
    third = second.after(30, 3, 0.5, "f1_macro", 0.5)
    assert (third.step, third.num_without_gain) == (20, 2)
    assert third.after(40, 4, 0.4, "f1_macro", 0.1).step == 20


def test_where_nothing_can_judge_the_last_state_is_the_best():
    assert Best().after(10, 1, None, "loss").after(20, 2, None, "loss").step == 20
