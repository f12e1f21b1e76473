from bench.collapsing.sums import compare, is_failed, widest_band
from bench.collapsing.table import LEDGER, PAGE, insert, make_table, read_ledger


def run(arm, lr, seed, accuracy, top_share=0.6, layers=2, tokens=100):
    return {
        "arm": arm, "layers": layers, "lr": lr, "seed": seed, "accuracy": accuracy, "top_share": top_share,
        "majority": 0.5, "tokens": tokens, "step_seconds": 1.0,
    }  # fmt: skip


def test_a_run_has_failed_near_the_majority_or_with_one_class():
    assert is_failed(run("shuffle", 1e-3, 0, 0.51))
    assert is_failed(run("shuffle", 1e-3, 0, 0.7, top_share=0.98))
    assert not is_failed(run("shuffle", 1e-3, 0, 0.52))


def test_only_pairs_of_one_seed_and_rate_are_compared():
    one = [run("shuffle", 1e-3, seed, 0.5) for seed in range(3)]
    two = [run("ladder", 1e-3, seed, 0.7) for seed in range(1, 4)]
    assert compare(one, two) == {"pairs": 2, "only_first": 2, "only_second": 0, "p": 0.5}


def test_a_band_ends_where_a_run_has_failed():
    records = [run("shuffle", lr, 0, 0.5 if lr == 1e-3 else 0.7) for lr in (1e-4, 3e-4, 1e-3, 2e-3)]
    assert widest_band(records, (1e-4, 3e-4, 1e-3, 2e-3)) == {"low": 1e-4, "high": 3e-4}


def test_the_table_counts_failures_and_costs_in_healthy_runs():
    records = [
        run("good", 1e-4, 0, 0.7),
        run("shuffle", 1e-3, 0, 0.5),
        run("ladder", 1e-3, 0, 0.69, tokens=240),
    ]
    lines = make_table(records).splitlines()
    assert "| default | 1 | 1 |" in lines[3]
    assert lines[4].endswith("| 2.40 |")


def test_the_table_of_the_page_is_the_one_made_from_the_ledger():
    text = PAGE.read_text("utf-8")
    assert insert(text, make_table(read_ledger(LEDGER))) == text
