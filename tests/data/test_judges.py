"""The linear models behind the teacher."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.naive_bayes import MultinomialNB

from textmill.core.seeds import numpy_generator
from textmill.data.judges import Logistic, NaiveBayes, OneVsRest, fit_judge, given_matrix


def _rows(num: int = 60, classes: int = 3, several: bool = False) -> tuple[csr_matrix, list[tuple[int, ...]]]:
    """Return sparse rows in which feature c is high where class c is given."""
    rng = numpy_generator(0, "judges")
    sets = []
    matrix = rng.random((num, classes + 6)) * (rng.random((num, classes + 6)) < 0.4)
    for row in range(num):
        given = {row % classes} | ({(row + 1) % classes} if several and row % 2 else set())
        if several and row % 7 == 0:
            given = set()
        for index in given:
            matrix[row, index] += 1.5
        sets.append(tuple(sorted(given)))
    return csr_matrix(matrix.astype(np.float32)), sets


def test_naive_bayes_gives_the_numbers_of_scikit_learn():
    matrix, sets = _rows()
    found = NaiveBayes(matrix, given_matrix(sets, 3), is_multilabel=False).probabilities(matrix)
    reference = MultinomialNB(alpha=0.5).fit(matrix, [each[0] for each in sets]).predict_proba(matrix)
    np.testing.assert_allclose(found, reference, rtol=1e-4, atol=1e-6)


def test_several_labels_give_the_odds_of_one_class_against_the_rest():
    matrix, sets = _rows(several=True)
    given = given_matrix(sets, 3)
    found = NaiveBayes(matrix, given, is_multilabel=True).probabilities(matrix)
    for index in range(3):
        is_given = [index in each for each in sets]
        reference = MultinomialNB(alpha=0.5).fit(matrix, is_given).predict_proba(matrix)[:, 1]
        np.testing.assert_allclose(found[:, index], reference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("most_work", [0, 10**9])
def test_every_judge_finds_the_classes(several, most_work):
    matrix, sets = _rows(several=several)
    judge = fit_judge(matrix, given_matrix(sets, 3), is_multilabel=several, seed=0, most_work=most_work)
    found = judge.probabilities(matrix)
    assert (found.shape, found.dtype) == ((60, 3), np.float32)
    assert ((found >= 0) & (found <= 1)).all()
    given = given_matrix(sets, 3).toarray() > 0
    assert found[given].mean() > found[~given].mean() + 0.2
    if not several:
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_work_decides_which_judge_is_asked():
    matrix, sets = _rows()
    given = given_matrix(sets, 3)
    work = matrix.nnz * 3
    assert isinstance(fit_judge(matrix, given, is_multilabel=False, seed=0, most_work=work), Logistic)
    assert isinstance(fit_judge(matrix, given, is_multilabel=True, seed=0, most_work=work), OneVsRest)
    assert isinstance(fit_judge(matrix, given, is_multilabel=False, seed=0, most_work=work - 1), NaiveBayes)


def test_a_class_that_every_row_has_is_certain():
    matrix, _ = _rows(10)
    given = given_matrix([(0,)] * 10, 1)
    for several, most_work in ((False, 0), (False, 10**9), (True, 10**9)):
        judge = fit_judge(matrix, given, is_multilabel=several, seed=0, most_work=most_work)
        np.testing.assert_allclose(judge.probabilities(matrix), 1)
