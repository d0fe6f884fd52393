"""Regular expressions of RE2, as Go has them, in Python's notation: the same matches, the same refusals."""

from __future__ import annotations

import functools
import re

from trainyard.policy.cel.values import CelError

CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
OUTSIDE = {  # the negated ones, as ranges: they may stand inside brackets
    "D": r"\x00-/:-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`\{-\U0010ffff",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
}
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
WORD = "[0-9A-Za-z_]"
EDGE = f"(?:(?<={WORD})(?!{WORD})|(?<!{WORD})(?={WORD}))"
INSIDE = f"(?:(?<={WORD})(?={WORD})|(?<!{WORD})(?!{WORD}))"
SIGNS = {"a": r"\x07", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t", "v": r"\v"}
GROUP = re.compile(r"\(\?(?:P?<(?P<name>[A-Za-z_0-9]+)>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))")
REPEAT = re.compile(r"([*+?]|\{([0-9]+)(,([0-9]*))?\})")
HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
MOST = 1000


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern in Python. Raises CelError for what RE2 refuses, and for what is not translated."""
    try:
        return re.compile(_Translation(pattern).text)
    except (re.error, OverflowError, RecursionError) as error:
        raise CelError(f"{pattern} is no regular expression: {error}") from None


class _Translation:
    """One pattern. Flags hold from where they stand to the end of their group, also behind a `|`."""

    def __init__(self, pattern: str) -> None:
        self._left = pattern
        self._pattern = pattern
        self._flags: frozenset[str] = frozenset()
        self.text = self._group()
        if self._left:
            raise self._refused("a group ends that never began")

    def _refused(self, why: str) -> CelError:
        return CelError(f"{self._pattern} is no regular expression: {why}")

    def _take(self, count: int = 1) -> str:
        if len(self._left) < count:
            raise self._refused("it ends too soon")
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def _group(self) -> str:
        """Up to the end of the group or of the pattern."""
        outer = self._flags
        branches: list[str] = []
        parts: list[str] = []
        while self._left and self._left[0] != ")":
            if self._left[0] == "|":
                self._take()
                branches.append("".join(parts))
                parts = []
                continue
            parts.append(self._repeated(self._atom()))
        self._flags = outer
        return "|".join([*branches, "".join(parts)])

    def _repeated(self, atom: str | None) -> str:
        """The atom with the sign after it that says how often."""
        match = REPEAT.match(self._left)
        if atom is None or not match:
            return atom or ""
        self._take(len(match[0]))
        if match[2] and (int(match[2]) > MOST or int(match[4] or 0) > MOST or int(match[4] or MOST) < int(match[2])):
            raise self._refused(f"bad count {match[0]}")
        lazy = self._take() if self._left[:1] == "?" else ""
        if REPEAT.match(self._left):
            raise self._refused("one repetition directly after another")
        return f"(?:{atom}){match[0]}{lazy}"

    def _atom(self) -> str | None:
        """One atom in Python's notation; None for flags alone, which nothing repeats."""
        sign = self._take()
        if sign == "(":
            return self._parenthesis()
        if sign == "[":
            return self._flagged(self._brackets())
        if sign == "\\":
            return self._escape()
        if sign in "*+?":
            raise self._refused(f"nothing to repeat before {sign}")
        if sign == "{" and REPEAT.match("{" + self._left):
            raise self._refused("nothing to repeat before {")
        if sign == "$":
            return "(?m:$)" if "m" in self._flags else r"\Z"
        if sign == "^":
            return "(?m:^)" if "m" in self._flags else r"\A"
        if sign == ".":
            return "(?s:.)" if "s" in self._flags else r"[^\n]"
        return self._flagged(re.escape(sign))

    def _flagged(self, text: str) -> str:
        return f"(?i:{text})" if "i" in self._flags else text

    def _parenthesis(self) -> str | None:
        before = self._flags
        begin = "("
        if self._left.startswith("?"):
            match = GROUP.match("(" + self._left)
            if not match or match[0] in ("(?)", "(?-:", "(?-)"):
                raise self._refused("RE2 has no such group")
            self._take(len(match[0]) - 1)
            on, off = match["on"] or "", match["off"] or ""
            if "U" in on + off:
                raise CelError("the flag U of a regular expression is not evaluated here")
            self._flags = (self._flags | set(on)) - set(off)
            if match["end"] == ")":
                if REPEAT.match(self._left):
                    raise self._refused("nothing to repeat after flags")
                return None
            begin = "(" if match["name"] else "(?:"  # nobody reads the names, and Python has other rules for them
        inner = self._group()
        if self._take() != ")":
            raise self._refused("a group has no end")
        self._flags = before
        return f"{begin}{inner})"

    def _escape(self) -> str:
        sign = self._take()
        if sign in CLASSES:
            return self._flagged(f"[{CLASSES[sign]}]")
        if sign in OUTSIDE:
            return f"[^{CLASSES[sign.lower()]}]"
        if sign == "Q":
            quoted, _, self._left = self._left.partition(r"\E")
            if REPEAT.match(self._left) and quoted:
                raise CelError("a repetition after \\Q...\\E is not evaluated here")
            return self._flagged(re.escape(quoted))
        if sign in "AzbB":
            return {"A": r"\A", "z": r"\Z", "b": EDGE, "B": INSIDE}[sign]
        return self._flagged(self._character(sign))

    def _character(self, sign: str) -> str:
        """What stands after a backslash and means one character, inside of brackets too."""
        if sign in "pP":
            raise CelError(f"\\{sign}{self._left[:1]} of a regular expression is not evaluated here")
        if sign in SIGNS:
            return SIGNS[sign]
        match = HEX.match(sign + self._left)
        if match:
            self._take(len(match[0]) - 1)
            code = int(match[1] or match[2], 16)
            if code > 0x10FFFF:
                raise self._refused(f"no character {match[0]}")
            return f"\\U{code:08x}"
        octal = re.match("0[0-7]{0,2}|[1-7][0-7]{1,2}", sign + self._left)
        if octal:
            self._take(len(octal[0]) - 1)
            return f"\\U{int(octal[0], 8):08x}"
        if not sign.isascii() or sign.isalnum():
            raise self._refused(f"RE2 has no \\{sign}")
        return re.escape(sign)

    def _brackets(self) -> str:
        done = "["
        if self._left.startswith("^"):
            done += self._take()
        first = True
        while first or not self._left.startswith("]"):
            first = False
            done += self._member()
        self._take()
        return done + "]"

    def _member(self) -> str:
        """One character, range or class between brackets."""
        posix = re.match(r"\[:(\^?)(\w+):\]", self._left)
        if posix:
            if posix[2] not in POSIX:
                raise self._refused(f"RE2 has no {posix[0]}")
            if posix[1]:
                raise CelError(f"{posix[0]} of a regular expression is not evaluated here")
            self._take(len(posix[0]))
            return POSIX[posix[2]]
        if self._left[:1] == "\\" and self._left[1:2] in {**CLASSES, **OUTSIDE}:
            return {**CLASSES, **OUTSIDE}[self._take(2)[1]]
        low = self._one()
        if self._left[:1] == "-" and self._left[1:2] not in ("", "]"):
            self._take()
            return f"{low}-{self._one()}"
        return low

    def _one(self) -> str:
        sign = self._take()
        return self._character(self._take()) if sign == "\\" else "\\" + sign if sign in r"\^]-[&~|" else sign
