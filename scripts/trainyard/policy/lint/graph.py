"""Cycles in dependency graphs."""

from collections.abc import Iterable, Mapping


def circle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """One cycle of a graph, with its first name repeated at the end; [] if there is none."""
    done: set[str] = set()
    for start in edges:
        trail: list[str] = []
        stack = [(start, iter(sorted(edges.get(start, ()))))] if start not in done else []
        trail += [start] if stack else []
        while stack:
            rest = stack[-1][1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                done.add(trail.pop())
            elif following in trail:
                return [*trail[trail.index(following) :], following]
            elif following not in done:
                trail.append(following)
                stack.append((following, iter(sorted(edges.get(following, ())))))
    return []
