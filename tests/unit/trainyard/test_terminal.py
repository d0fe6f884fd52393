"""A program's output reaches a terminal as text and colours, a file unchanged."""

import os
import sys
import tty

import pytest

from trainyard.commands import runs_logs
from trainyard.terminal import harmless

KEPT = (b"\x1b[1;31mred\x1b[0m", b"10 %\r 20 %", b"a\tb", "größer 速度 é".encode(), b"\xff\xfe no UTF-8")
SHOWN = (
    (b"\x1b]0;owned\x07", b"^[]0;owned^G"),  # a title
    (b"\x1b]52;c;cm0gLXJm\x1b\\", b"^[]52;c;cm0gLXJm^[\\"),  # what is pasted next
    (b"\x1b[2J\x1b[H\x1b[8mroot@node:~#", b"^[[2J^[[H\x1b[8mroot@node:~#"),
    (b"\x1b[6n\x1bP+q544e\x1b\\", b"^[[6n^[P+q544e^[\\"),  # questions that the terminal answers by typing
    ("\x9b2J".encode(), b"?2J"),
    (b"a\x08b\x7f\x00", b"a^Hb^?^@"),
)


@pytest.mark.parametrize("line", KEPT)
def test_text_and_colours_stay(line: bytes) -> None:
    assert harmless(line) == line


@pytest.mark.parametrize(("line", "shown"), SHOWN)
def test_what_a_terminal_would_obey_is_shown(line: bytes, shown: bytes) -> None:
    assert harmless(line) == shown


def test_a_log_is_harmless_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    line = SHOWN[0][0]
    terminal, inside = os.openpty()
    tty.setraw(inside)
    out, into = os.pipe()
    for end, other, due in ((inside, terminal, SHOWN[0][1]), (into, out, line)):
        with os.fdopen(end, "w") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            runs_logs._write(line)
            assert os.read(other, 100) == due + b"\n"
            monkeypatch.undo()
        os.close(other)
