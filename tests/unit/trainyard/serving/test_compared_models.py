"""Cards as tables: any job of a team writes one, and what it says reaches its readers' terminals as text."""

from __future__ import annotations

from trainyard.serving import cards, comparison

HOSTILE = {
    "name": "digits\x1b]0;x\x07",
    "version": "1\r2",
    "framework": "onnx\x1b[2J",
    "run": "a\nb\u202e",
    "metrics": {"m\x1b": 1},
}


def test_a_card_moves_no_cursor() -> None:
    card = cards.read(HOSTILE, "runs/vision/models/digits/1")
    for text in (comparison.listing([card], {}), comparison.table(card, card), card.title):
        assert all(one.isprintable() or one == "\n" for one in text)
    assert len(comparison.listing([card], {}).splitlines()) == 2
