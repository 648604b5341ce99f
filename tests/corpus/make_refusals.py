"""Bring `refusals.json` to today: take out what works by now, renew what is said of the rest.

No function is ever added to a list that exists.

Usage: python tests/corpus/make_refusals.py
"""

import sys

from corpus_check import BOUND, refusal_of
from corpus_loader import REFUSALS, read, write


def reason(refusal):
    """The start of a refusal's message: operation and problem, without types and places."""
    return ": ".join(str(refusal).splitlines()[0].split(": ")[:2]).partition(" (")[0]


def refused(bound):
    """(function, reason) of what is refused today, in alphabetical order."""
    refusals = {name: refusal_of(bound, name) for name in BOUND[bound]}
    return sorted((name, reason(said)) for name, said in refusals.items() if said is not None)


def main():
    found = {bound: refused(bound) for bound in BOUND}
    if REFUSALS.exists():
        known = read(REFUSALS)
        new = [
            (bound, name, said)
            for bound in BOUND
            for name, said in found[bound]
            if name not in dict(known[bound])
        ]
        if new:
            return f"refused, and not listed as such: {new}"
    write(REFUSALS, found)
    return None


if __name__ == "__main__":
    sys.exit(main())
