"""The declarations that are shipped, each spoilt at random: what loads still is a table.

A mutation says in which fields of its entry the table may then differ, or that there must be an
error; whatever else loads or is raised fails.
"""

import ast
import random
import re
from pprint import pformat

import pytest

from stagedad.errors import DeclarationError
from stagedad.ops.build import DECLARATIONS
from stagedad.ops.derivatives import RULES
from stagedad.ops.draft import KEYS
from stagedad.ops.loader import load_texts
from stagedad.ops.table import make_op

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DECLARATIONS.glob("*.toml")}
TABLE = load_texts(TEXTS)
SEEDS = range(3)

# Field of the table -> keys of an entry that it comes from, where the names differ.
FIELDS = {
    "signature": {"arguments", "attributes", "results", "returns_list", "partials", "vjps",
                  "jvp", "flops"},
    "type": {"type_rule", "traits"},
    "complex": {"is_complex"},
    "singular": {"traits"},
    "random": {"traits"},
    "effect": {"traits", "facts"},
    "partial": {"partials", "vjps", "jvp", "arguments"},
    "vjp": {"partials", "vjps", "jvp", "arguments"},
}  # fmt: skip
FACTS = ("batch", "forwards", "source", "notes", "may_fail", "outputs")


def fields_of(key):
    first = key.split(".")[0]
    return FIELDS.get(first, {"facts"} if first in FACTS else {first})


class Pair:
    """A key of a file with its value, which may go on over lines."""

    def __init__(self, file, entry, start, end):
        lines = TEXTS[file].split("\n")[start:end]
        self.file, self.entry, self.start, self.end = file, entry, start, end
        self.key, self.value = "\n".join(lines).split(" = ", 1)

    @property
    def is_formula(self):
        first = self.key.split(".")[0]
        return first in ("partial", "vjp", "jvp") and self.value[1:-1] not in (*RULES, "linear")

    def replaced(self, *lines):
        """The text of the file with `lines` in the place of the pair."""
        text = TEXTS[self.file].split("\n")
        return "\n".join([*text[: self.start], *lines, *text[self.end :]])


def pairs(file):
    found, entry, start = [], None, None
    lines = [*TEXTS[file].split("\n"), "["]
    for number, line in enumerate(lines):
        begins = re.match(r"[\w.]+ = |\[|#|$", line)
        if begins and start is not None:
            found.append(Pair(file, entry, start, number))
            start = None
        if line.startswith("[") and line != "[":
            entry = line[1:-1]
        elif re.match(r"[\w.]+ = ", line):
            start = number
    return found


PAIRS = {file: pairs(file) for file in TEXTS}


def names_in(pair):
    return re.findall(r"[A-Za-z_]\w*", pair.value)


def misspelt(name, chance):
    at = chance.randrange(len(name))
    return name[:at] + chance.choice(["", "q", name[at] * 2]) + name[at + 1 :] + "x"


def call_of(pair):
    """A call in the formula: where it starts, and its arguments as Python reads them."""
    tree = ast.parse(pair.value[1:-1], mode="eval")
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def dropped(chance, file):
    pair = chance.choice(PAIRS[file])
    return pair, pair.replaced(), fields_of(pair.key)


def doubled(chance, file):
    pair = chance.choice(PAIRS[file])
    line = f"{pair.key} = {pair.value}"
    return pair, pair.replaced(line, line), None


def misspelt_key(chance, file):
    pair = chance.choice(PAIRS[file])
    first, dot, rest = pair.key.partition(".")
    name = misspelt(first, chance)
    while name in KEYS:
        name = misspelt(first, chance)
    return pair, pair.replaced(f"{name}{dot}{rest} = {pair.value}"), None


def misspelt_argument(chance, file):
    found = [pair for pair in PAIRS[file] if "." in pair.key]
    pair = chance.choice(found or PAIRS[file])
    return pair, pair.replaced(f"{pair.key}q = {pair.value}"), None


def misspelt_name(chance, file):
    found = [pair for pair in PAIRS[file] if pair.is_formula and names_in(pair)]
    pair = chance.choice(found or [each for each in PAIRS[file] if each.key == "signature"])
    name = chance.choice([each for each in names_in(pair) if each not in ("if", "else", "not")])
    pattern = rf"\b{name}\b" if pair.is_formula else rf"\b{pair.entry}\b"
    value = re.sub(pattern, misspelt(name, chance), pair.value, count=1)
    return pair, pair.replaced(f"{pair.key} = {value}"), None


def misspelt_entry(chance, file):
    entry = chance.choice([pair.entry for pair in PAIRS[file]])
    pair = next(pair for pair in PAIRS[file] if pair.entry == entry)
    text = TEXTS[file].replace(f"[{entry}]\n", f"[{misspelt(entry, chance)}]\n", 1)
    return pair, text, None


def swapped(chance, file):
    found = [pair for pair in PAIRS[file] if len(set(names_in(pair))) > 1 and pair.is_formula]
    found = found or [pair for pair in PAIRS[file] if pair.key == "signature"]
    pair = chance.choice(found)
    one, other = chance.sample(sorted(set(names_in(pair))), 2)
    names = {one: other, other: one}
    value = re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), pair.value)
    return pair, pair.replaced(f"{pair.key} = {value}"), fields_of(pair.key)


def other_arity(chance, file):
    """A call of an op or macro with an argument more, or the first one less."""
    found = [pair for pair in PAIRS[file] if pair.is_formula and call_of(pair)]
    if not found:
        return doubled(chance, file)
    pair = chance.choice(found)
    call = chance.choice(call_of(pair))
    # One more than an op takes may be an attribute of it.
    if call.args and chance.random() < 0.5:
        del call.args[0]
    else:
        call.args.append(ast.Constant(7))
    text = ast.unparse(call)
    whole = ast.get_source_segment(pair.value[1:-1], ast.parse(pair.value[1:-1]).body[0])
    start, end = call.col_offset, call.end_col_offset
    value = f'"{whole[:start]}{text}{whole[end:]}"'.replace("'", "'")
    return pair, pair.replaced(f"{pair.key} = {value}"), fields_of(pair.key)


def underived(chance, file):
    """Without one of its derivatives."""
    found = [pair for pair in PAIRS[file] if re.match(r"(vjp|partial)\b", pair.key)]
    pair = chance.choice(found or [each for each in PAIRS[file] if each.key == "signature"])
    return pair, pair.replaced(), None


def cut(chance, file):
    pair = chance.choice(PAIRS[file])
    line = f"{pair.key} = {pair.value}"
    return pair, pair.replaced(line[: chance.randrange(len(pair.key), len(line))]), "any"


def scrambled(chance, file):
    """One character for another, anywhere in a line."""
    pair = chance.choice(PAIRS[file])
    line = f"{pair.key} = {pair.value}"
    at = chance.randrange(len(line))
    character = chance.choice("()[]{}\"'.,=#*-+/\\\n \t0e_\u00e9\u2028")
    return pair, pair.replaced(line[:at] + character + line[at + 1 :]), "any"


MUTATIONS = (
    dropped, doubled, misspelt_key, misspelt_argument, misspelt_name, misspelt_entry, swapped,
    other_arity, underived, cut, scrambled,
)  # fmt: skip


def check_error(error, texts):
    assert error.file in texts
    lines = texts[error.file].split("\n")
    assert 1 <= error.line <= len(lines), error
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1, error
    assert str(error).startswith(f"{error.file}:{error.line}:{error.column}: ")
    assert error.entry is None or error.entry in str(error)
    assert error.key is None or error.key in str(error)
    missing = (
        "missing signature",
        "no rule for",
        "no jvp",
        "needs expr and flops",
        "not a name",
    )
    if "not TOML" not in str(error):
        assert error.entry is not None, error
        assert error.key is not None or any(word in str(error) for word in missing), error


def check_table(entries):
    for kind, entry in entries.items():
        for name, _, rule in entry["arguments"]:
            assert rule in ("formula", *RULES)
            has_formula = name in entry["partials"] or name in entry["vjps"]
            assert has_formula == (rule == "formula"), (kind, name)
        active = any(rule == "formula" for _, _, rule in entry["arguments"])
        aux = "aux" in entry["facts"].get("outputs", {}).values()
        assert not active or entry["partials"] or entry["jvp"] is not None or aux


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("file", sorted(TEXTS))
def test_loads_as_said_or_tells_where(file, mutation):
    for seed in SEEDS:
        chance = random.Random(f"{file} {mutation.__name__} {seed}")
        pair, text, fields = mutation(chance, file)
        if text == TEXTS[file]:
            continue
        texts = {**TEXTS, file: text}
        try:
            entries = load_texts(texts)
        except DeclarationError as error:
            check_error(error, texts)
            continue
        assert fields is not None, (pair.entry, pair.key, pair.value)
        check_table(entries)
        changed = {kind for kind in entries if entries[kind] != TABLE.get(kind)}
        allowed = entries.keys() if fields == "any" else {pair.entry}
        orders = {"max_order"} | (set() if fields == "any" else fields)
        for kind in changed & TABLE.keys():
            old, new = TABLE[kind], entries[kind]
            differing = {field for field in new if new[field] != old[field]}
            assert differing <= {"max_order"} or kind in allowed, (kind, differing)
            assert fields == "any" or differing <= orders, (pair.entry, pair.key, differing)
        assert fields == "any" or entries.keys() == TABLE.keys()
        for kind in changed:
            literal = ast.literal_eval(pformat(entries[kind], sort_dicts=False))
            assert literal == entries[kind]
            assert make_op(literal).kind == kind


def test_mutations_change_what_they_say():
    """The texts differ, the entries are found, and most that must fail would else load."""
    count = sum(len(found) for found in PAIRS.values())
    assert count == sum(len(re.findall(r"(?m)^[\w.]+ = ", text)) for text in TEXTS.values())
    assert {pair.entry for found in PAIRS.values() for pair in found} == TABLE.keys()
    for mutation in MUTATIONS:
        texts = {mutation(random.Random(seed), "elementwise.toml")[1] for seed in range(20)}
        assert len(texts) > 10
        assert TEXTS["elementwise.toml"] not in texts or mutation in (swapped, scrambled, cut)
