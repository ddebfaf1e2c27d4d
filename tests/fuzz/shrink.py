"""Makes a list, or a statement, smaller as long as it still shows the fault (delta debugging)."""

import time

from mutate import tokens


def smaller(items, shows, seconds):
    """A part of `items`, in order, for which `shows` still holds; no single one of it can go, if there was time to see."""
    end = time.monotonic() + seconds
    size = max(len(items) // 2, 1)
    while items:
        i, gone = 0, False
        while i < len(items):
            if time.monotonic() > end:
                return items
            less = items[:i] + items[i + size:]
            if shows(less):
                items, gone = less, True
            else:
                i += size
        if size == 1 and not gone:
            break
        size = max(size // 2, 1)
    return items


def shorter(statement, shows, seconds):
    """The same for the tokens of one statement: parentheses go with what is in them, or without it."""
    end = time.monotonic() + seconds
    parts = [t if not t.isspace() else " " for t in tokens(statement)]
    while time.monotonic() < end:
        before = len(parts)
        for i, j in sorted(pairs(parts), key=lambda p: p[0] - p[1]):
            for attempt in (parts[i + 1:j], ["null"]):
                less = parts[:i] + attempt + parts[j + 1:]
                if time.monotonic() < end and len(less) < len(parts) and shows("".join(less)):
                    parts = less
                    break
            else:
                continue
            break
        else:
            parts = smaller(parts, lambda p: shows("".join(p)), end - time.monotonic())
            if len(parts) == before:
                break
    return "".join(parts)


def pairs(parts):
    """Where parentheses open and close."""
    found, stack = [], []
    for i, t in enumerate(parts):
        if t == "(":
            stack.append(i)
        elif t == ")" and stack:
            found.append((stack.pop(), i))
    return found
