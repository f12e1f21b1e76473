import json

from textmill.train.hooks import Evaluated, EventLog, StepDone, cut_events, read_events


def step_done(step):
    return StepDone(
        step=step,
        epoch=1,
        loss=0.5,
        lr=1e-5,
        grad_norm=1.0,
        encoder_norm=0.6,
        head_norm=0.8,
        rows=8,
        tokens=80,
        cells=100,
        seconds=0.1,
    )


def evaluated(step):
    return Evaluated(
        step=step, epoch=1, valid_loss=0.4, accuracy=0.8, f1_macro=0.7, is_best=True, seconds=0.1
    )


def write_log(path, steps):
    log = EventLog(path)
    for step in range(1, steps + 1):
        log.on_step(step_done(step))
        if step % 2 == 0:
            log.on_evaluation(evaluated(step))
    log.close()


def test_a_log_goes_on_after_it_was_closed(tmp_path):
    path = tmp_path / "events.jsonl"
    write_log(path, 2)
    write_log(path, 1)
    assert [event["step"] for event in read_events(path)] == [1, 2, 2, 1]


def test_cutting_keeps_steps_and_evaluations_up_to_the_step(tmp_path):
    path = tmp_path / "events.jsonl"
    write_log(path, 5)
    before = path.read_text().splitlines()
    assert cut_events(path, 4) == 1
    assert path.read_text().splitlines() == before[:-1]
    assert cut_events(path, 3) == 2
    assert path.read_text().splitlines() == before[:-3]
    assert cut_events(path, 0) == 4
    assert path.read_text() == ""


def test_a_line_cut_by_a_kill_is_left_out(tmp_path):
    path = tmp_path / "events.jsonl"
    write_log(path, 1)
    path.write_text(path.read_text() + '{"event": "st')
    assert len(read_events(path)) == 1


def test_a_missing_log_has_no_events(tmp_path):
    assert read_events(tmp_path / "nothing.jsonl") == []
    assert cut_events(tmp_path / "nothing.jsonl", 3) == 0


def test_every_line_is_json_with_its_kind(tmp_path):
    path = tmp_path / "events.jsonl"
    write_log(path, 2)
    kinds = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert kinds == ["step", "step", "evaluation"]
