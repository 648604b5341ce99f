"""The functions of the corpus, with `np` bound to whatever is asked for.

The modules of `functions/` are written as NumPy's users write theirs and know nothing of
stagedad: `import numpy as np` is their only tie. `load` executes the same source with another
`np`. An argument is differentiated if all that it holds are floats.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy

FUNCTIONS = sorted((Path(__file__).parent / "functions").glob("*.py"))
# Written by make_answers.py and make_refusals.py.
ANSWERS = Path(__file__).with_name("answers.json")
REFUSALS = Path(__file__).with_name("refusals.json")
IMPORT = "\nimport numpy as np\n"


def load(np, **names):
    """Execute every module with this `np`: function name -> (function, list of arguments)."""
    found = {}
    for path in FUNCTIONS:
        source = path.read_text()
        assert source.count(IMPORT) == 1, path
        module = ModuleType(f"corpus_{path.stem}")
        module.__dict__.update(names, np=np)
        # An empty line in the import's place: errors name the lines of the file.
        exec(compile(source.replace(IMPORT, "\n\n"), path, "exec"), module.__dict__)
        for name, examples in module.EXAMPLES.items():
            assert name not in found, name
            found[name] = getattr(module, name), examples
    return found


def leaves(tree):
    """The arrays and numbers of a tree of dicts (by key), lists and tuples, in order."""
    if isinstance(tree, Mapping):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for branch in tree for leaf in leaves(branch)]
    return [tree]


def flat(tree):
    """All numbers of a tree in one vector."""
    return numpy.concatenate([numpy.ravel(leaf) for leaf in leaves(tree)])


def rebuilt(tree, vector):
    """The tree with the numbers of the vector in place of its own; scalars become scalars."""
    position = 0

    def build(branch):
        nonlocal position
        if isinstance(branch, Mapping):
            done = {key: build(branch[key]) for key in sorted(branch)}
            return {key: done[key] for key in branch}
        if isinstance(branch, list | tuple):
            return type(branch)(build(each) for each in branch)
        part = vector[position : position + numpy.size(branch)]
        position += numpy.size(branch)
        return part.reshape(branch.shape).copy() if numpy.ndim(branch) else part[0]

    return build(tree)


def seed(count):
    """Cotangents of a result of so many numbers: 1, or numbers that are all different."""
    return numpy.cos(1.0 + numpy.arange(count)) if count > 1 else numpy.ones(1)


def read(path):
    """The contents of one of the two files."""
    return json.loads(path.read_text())


def write(path, table):
    """Write them: one line an entry, so that a change of one shows as one."""
    entries = [
        f"{json.dumps(name)}: {json.dumps(entry)}"
        if isinstance(entry, str)
        else f"{json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, entry)) + "\n]"
        for name, entry in sorted(table.items())
    ]
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")
