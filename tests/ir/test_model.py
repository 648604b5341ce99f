"""Tests of ir/_graph against a slow and obvious model, by random sequences of edits."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from stagedad.errors import StaleHandle, VerifyError
from stagedad.ir import Graph


class Model:
    """The same graph as lists of names: values are numbers, a node is a dict."""

    def __init__(self):
        self.inputs, self.outputs, self.order, self.loose = [], [], [], []

    def nodes(self):
        return self.order + self.loose

    def values(self):
        return self.inputs + [value for node in self.nodes() for value in node["outputs"]]

    def uses(self, value):
        found = Counter()
        for node in self.nodes():
            for offset, read in enumerate(node["inputs"]):
                if read == value:
                    found[node["name"], offset] += 1
        for offset, read in enumerate(self.outputs):
            if read == value:
                found["return", offset] += 1
        return found

    def is_sound(self):
        known = set(self.inputs)
        for node in self.order:
            if not known.issuperset(node["inputs"]):
                return False
            known.update(node["outputs"])
        return known.issuperset(self.outputs)

    def replace(self, old, new, except_=None):
        for node in self.nodes():
            if node is not except_:
                node["inputs"] = [new if read == old else read for read in node["inputs"]]
        self.outputs = [new if read == old else read for read in self.outputs]


class Pair:
    """A graph and its model, edited in step."""

    def __init__(self, seed):
        self.rng, self.graph, self.model = random.Random(seed), Graph(), Model()
        self.value, self.node = {}, {}  # name in the model -> handle
        self.dead = []
        self.count = 0

    def name(self):
        self.count += 1
        return self.count

    def some(self, names, most):
        return [
            self.rng.choice(names) for _ in range(self.rng.randint(0, most if names else 0))
        ]

    def register(self, node, handle):
        self.node[node["name"]] = handle
        for name, value in zip(node["outputs"], handle.outputs, strict=True):
            self.value[name] = value

    def new_node(self):
        node = {
            "name": self.name(),
            "inputs": self.some(self.model.values(), 3),
            "outputs": [self.name() for _ in range(self.rng.choice([0, 1, 1, 1, 2, 3]))],
        }
        operands = [self.value[name] for name in node["inputs"]]
        return node, operands

    # Each edit returns without doing anything where it does not apply.

    def add_graph_input(self):
        name = self.name()
        self.value[name] = self.graph.add_input()
        self.model.inputs.append(name)

    def create(self):
        node, operands = self.new_node()
        self.register(node, self.graph.create("f", *operands, outputs=len(node["outputs"])))
        self.model.loose.append(node)

    def insert(self):
        node, operands = self.new_node()
        count = len(node["outputs"])
        if count:
            given = self.graph.insert("f", *operands, outputs=count)
            self.register(node, (given if count == 1 else given[0]).node)
        else:
            handle = self.graph.create("f", *operands, outputs=0)
            self.graph.append(handle)
            self.register(node, handle)
        self.model.order.append(node)

    def append(self):
        if self.model.loose:
            node = self.model.loose.pop(self.rng.randrange(len(self.model.loose)))
            self.graph.append(self.node[node["name"]])
            self.model.order.append(node)

    def attach(self):
        model = self.model
        if model.loose and model.order:
            node = model.loose.pop(self.rng.randrange(len(model.loose)))
            at = self.rng.randrange(len(model.order))
            anchor = self.node[model.order[at]["name"]]
            handle = self.node[node["name"]]
            if self.rng.random() < 0.5:
                handle.insert_before(anchor)
                model.order.insert(at, node)
            else:
                handle.insert_after(anchor)
                model.order.insert(at + 1, node)

    def move(self):
        model = self.model
        if len(model.order) > 1:
            node, anchor = self.rng.sample(model.order, 2)
            model.order.remove(node)
            at = model.order.index(anchor)
            handle, other = self.node[node["name"]], self.node[anchor["name"]]
            if self.rng.random() < 0.5:
                handle.move_before(other)
                model.order.insert(at, node)
            else:
                handle.move_after(other)
                model.order.insert(at + 1, node)

    def pick(self, needs=None):
        nodes = [node for node in self.model.nodes() if needs is None or node[needs]]
        return self.rng.choice(nodes) if nodes else None

    def add_input(self):
        node, values = self.pick(), self.model.values()
        if node and values:
            name = self.rng.choice(values)
            self.node[node["name"]].add_input(self.value[name])
            node["inputs"].append(name)

    def replace_input(self):
        node = self.pick("inputs")
        if node:
            at, name = (
                self.rng.randrange(len(node["inputs"])),
                self.rng.choice(self.model.values()),
            )
            self.node[node["name"]].replace_input(at, self.value[name])
            node["inputs"][at] = name

    def replace_input_with(self):
        node = self.pick("inputs")
        if node:
            old, new = self.rng.choice(node["inputs"]), self.rng.choice(self.model.values())
            self.node[node["name"]].replace_input_with(self.value[old], self.value[new])
            node["inputs"] = [new if read == old else read for read in node["inputs"]]

    def remove_input(self):
        node = self.pick("inputs")
        if node:
            at = self.rng.randrange(len(node["inputs"]))
            self.node[node["name"]].remove_input(at)
            del node["inputs"][at]

    def remove_all_inputs(self):
        node = self.pick()
        if node:
            self.node[node["name"]].remove_all_inputs()
            node["inputs"] = []

    def add_output(self):
        node = self.pick()
        if node:
            name = self.name()
            self.value[name] = self.node[node["name"]].add_output()
            node["outputs"].append(name)

    def erase_output(self):
        node = self.pick("outputs")
        if node:
            at = self.rng.randrange(len(node["outputs"]))
            name = node["outputs"][at]
            if self.model.uses(name):
                with pytest.raises(ValueError, match="used"):
                    self.node[node["name"]].erase_output(at)
            else:
                self.node[node["name"]].erase_output(at)
                del node["outputs"][at]
                self.dead.append(self.value.pop(name))

    def replace_all_uses(self):
        values = self.model.values()
        if values:
            old, new = self.rng.choice(values), self.rng.choice(values)
            spared = self.pick() if self.rng.random() < 0.5 else None
            self.value[old].replace_all_uses_with(
                self.value[new], except_=spared and self.node[spared["name"]]
            )
            self.model.replace(old, new, spared)

    def register_output(self):
        values = self.model.values()
        if values and len(self.model.outputs) < 6:
            name = self.rng.choice(values)
            self.graph.register_output(self.value[name])
            self.model.outputs.append(name)

    def destroy(self):
        node = self.pick()
        if node:
            # What a node reads of itself is a use too.
            used = any(self.model.uses(name) for name in node["outputs"])
            handle = self.node[node["name"]]
            assert handle.has_uses() == used
            if used:
                with pytest.raises(ValueError, match="used"):
                    handle.destroy()
                return
            handle.destroy()
            for part in (self.model.order, self.model.loose):
                if node in part:
                    part.remove(node)
            self.dead.append(self.node.pop(node["name"]))
            self.dead.extend(self.value.pop(name) for name in node["outputs"])

    EDITS = (
        add_graph_input, create, insert, insert, insert, append, append, attach, attach, move,
        add_input, replace_input, replace_input_with, remove_input, remove_all_inputs,
        add_output, erase_output, replace_all_uses, register_output, destroy, destroy, destroy,
    )  # fmt: skip

    def compare(self):
        """Assert that the graph is what the model says."""
        graph, model = self.graph, self.model
        assert graph.inputs == tuple(self.value[name] for name in model.inputs)
        assert graph.outputs == tuple(self.value[name] for name in model.outputs)
        order = [self.node[node["name"]] for node in model.order]
        assert list(graph.nodes()) == order
        assert list(reversed(graph)) == order[::-1]
        assert len(graph) == len(order)
        for left, right in pairwise(order):
            assert left.is_before(right)
            assert not right.is_before(left)
        named = {handle: name for name, handle in self.node.items()}
        for node in model.nodes():
            handle = self.node[node["name"]]
            assert handle.inputs == tuple(self.value[name] for name in node["inputs"])
            assert handle.outputs == tuple(self.value[name] for name in node["outputs"])
        for name in model.values():
            value = self.value[name]
            uses = Counter(
                ("return" if use.user.kind == "return" else named[use.user], use.offset)
                for use in value.uses
            )
            assert uses == model.uses(name)
            if name not in model.inputs:
                assert value.node.outputs[value.offset] == value
        if model.is_sound():
            graph.verify()
        else:
            with pytest.raises(VerifyError):
                graph.verify()


@pytest.mark.parametrize("seed", range(60))
def test_random_edits_agree_with_the_model(seed):
    pair = Pair(seed)
    for _ in range(120):
        pair.rng.choice(pair.EDITS)(pair)
        pair.compare()
    for handle in pair.dead:
        with pytest.raises(StaleHandle):
            _ = handle.stage


@pytest.mark.parametrize("seed", range(10))
def test_random_edits_survive_copies(seed):
    pair = Pair(1000 + seed)
    for _ in range(300):
        pair.rng.choice(pair.EDITS)(pair)
    for node in reversed(list(pair.graph.nodes())):
        node.remove_all_inputs()
    for _ in range(20):
        pair.append()
    if pair.model.loose:
        return
    # Without operands every order is sound, so the whole must copy.
    pair.graph.verify()
    twin = pair.graph.copy()
    assert twin == pair.graph
    assert len(twin) == len(pair.graph)
    twin.verify()
