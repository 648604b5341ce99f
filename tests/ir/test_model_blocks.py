"""Tests of ir/_blocks against a slow and obvious model, by random sequences of edits.

As test_model.py, with blocks: a node is in the graph, in a block at any depth, or nowhere.
"""

import os
import random
from collections import Counter
from contextlib import nullcontext

import pytest

from stagedad.errors import StaleHandle, VerifyError
from stagedad.ir import Graph, _verify, parse_graph

SOAK = bool(os.environ.get("STAGEDAD_SOAK"))

# What no public call breaks, whatever it does to the program.
BY_CONSTRUCTION = [
    _verify.check_ring,
    _verify.check_blocks,
    _verify.check_use_lists,
    _verify.check_outputs,
    _verify.check_names,
]


class Seq:
    """A sequence of nodes: the graph's own (`owner` None), or a block of `owner`."""

    def __init__(self, owner, handle):
        self.owner, self.handle = owner, handle
        self.inputs, self.order, self.reads = [], [], []


class Op:
    """A node; `place` is the Seq that it is in, or None. Values are numbers."""

    def __init__(self, reads, outputs):
        self.reads, self.outputs, self.blocks, self.place = reads, outputs, [], None

    def chain(self):
        """The nodes in whose blocks it is, the outermost first, and itself."""
        above = self.place.owner.chain() if self.place and self.place.owner else []
        return [*above, self]

    def within(self):
        """Itself, what is in its blocks, and these, in the order of a walk."""
        yield self
        for seq in self.blocks:
            for op in seq.order:
                yield from op.within()
            yield seq

    def computed(self):
        """What is computed here and in the blocks."""
        return {v for each in self.within() for v in computed(each)}

    def closed_over(self):
        read = [v for each in self.within() if each is not self for v in each.reads]
        return list(dict.fromkeys(v for v in read if v not in self.computed()))


def computed(each):
    return each.outputs if isinstance(each, Op) else each.inputs


class Pair:
    """A graph and its model, edited in step. An edit does nothing where it does not apply."""

    def __init__(self, seed):
        self.rng, self.graph = random.Random(seed), Graph()
        self.root, self.loose = Seq(None, self.graph), []
        self.value, self.node, self.dead = {}, {}, []
        self.count = 0

    # -- the model

    def everything(self):
        tops = (*self.root.order, *self.loose)
        return [self.root, *(each for op in tops for each in op.within())]

    def ops(self):
        return [each for each in self.everything() if isinstance(each, Op)]

    def seqs(self):
        return [each for each in self.everything() if isinstance(each, Seq)]

    def values(self):
        return [value for each in self.everything() for value in computed(each)]

    def is_read_outside(self, inside):
        found = {value for each in inside for value in computed(each)}
        return any(found & {*each.reads} for each in self.everything() if each not in inside)

    def is_sound(self, seq, known):
        known = known | {*seq.inputs}
        for op in seq.order:
            if not known.issuperset(op.reads):
                return False
            if not all(self.is_sound(inner, known) for inner in op.blocks):
                return False
            known |= {*op.outputs}
        return known.issuperset(seq.reads)

    def is_before(self, one, two):
        """None where there is no answer."""
        left, right = one.chain(), two.chain()
        if not one.place or not two.place:
            return None
        if left[0] is not right[0] and not (left[0].place or right[0].place):
            return ...  # see test_blocks.py
        if left[0] is not right[0] and not (left[0].place and right[0].place):
            return None
        for a, b in zip(left, right, strict=False):
            if a is not b:
                return a.place is b.place and a.place.order.index(a) < a.place.order.index(b)
        return False

    # -- making and placing

    def name(self):
        self.count += 1
        return self.count

    def pick(self, things):
        return self.rng.choice(things) if things else None

    def some_op(self, part=None):
        return self.pick([op for op in self.ops() if part is None or getattr(op, part)])

    def made(self):
        values = self.values()
        reads = (
            [self.rng.choice(values) for _ in range(self.rng.randrange(3))] if values else []
        )
        op = Op(reads, [self.name() for _ in range(self.rng.choice([0, 1, 1, 2]))])
        return op, [self.value[value] for value in reads]

    def register(self, op, handle):
        self.node[op] = handle
        self.value.update(zip(op.outputs, handle.outputs, strict=True))

    def put(self, op, seq, at):
        seq.order.insert(at, op)
        op.place = seq

    def inside(self, seq):
        return nullcontext() if seq is self.root else self.graph.inside(seq.handle)

    def create(self):
        op, operands = self.made()
        self.register(op, self.graph.create("f", *operands, outputs=len(op.outputs)))
        self.loose.append(op)

    def insert(self):
        (op, operands), seq = self.made(), self.pick(self.seqs())
        place = self.rng.choice([seq.handle, self.graph])
        with self.inside(seq) if place is self.graph else nullcontext():
            place.insert("f", *operands, outputs=len(op.outputs))
        self.register(op, next(reversed(seq.handle)))
        self.put(op, seq, len(seq.order))

    def attach(self):
        op, seq = self.pick(self.loose), self.pick(self.seqs())
        if not op:
            return
        handle, anchor = self.node[op], self.pick(seq.order)
        at = seq.order.index(anchor) if anchor else 0
        call, at = self.pick([
            (lambda: seq.handle.append(handle), len(seq.order)),
            (lambda: seq.handle.prepend(handle), 0),
            (lambda: self.graph.append(handle), len(seq.order)),
            *[
                (lambda: handle.insert_before(self.node[anchor]), at),
                (lambda: handle.insert_after(self.node[anchor]), at + 1),
            ][: 2 * bool(anchor)],
        ])  # fmt: skip
        with self.inside(seq):
            if seq in op.within():
                with pytest.raises(ValueError, match="own"):
                    call()
                return
            call()
        self.loose.remove(op)
        self.put(op, seq, at)

    def move(self):
        op, anchor = self.some_op("place"), self.some_op("place")
        if not op:
            return
        handle, other = self.node[op], self.node[anchor]
        after = self.rng.random() < 0.5
        move = handle.move_after if after else handle.move_before
        if anchor is not op and anchor in op.within():
            with pytest.raises(ValueError, match="own"):
                move(other)
            return
        move(other)
        if anchor is not op:
            op.place.order.remove(op)
            self.put(op, anchor.place, anchor.place.order.index(anchor) + after)

    def clone(self):
        op, seq = self.some_op(), self.pick(self.seqs())
        known = {*self.values()} - op.computed() if op else set()
        if not op or seq in op.within() or not all(self.is_sound(s, known) for s in op.blocks):
            return
        if len(self.ops()) > 40:
            return
        given = {self.value[v]: self.value[v] for v in (*op.reads, *op.closed_over())}
        with self.inside(seq):
            handle = self.node[op].clone_into(self.graph, given)
        self.put(self.twin(op, handle, {}), seq, len(seq.order))

    def twin(self, op, handle, names):
        """The model of a clone; `names` maps what is computed within to the clone's."""
        made = Op([names.get(v, v) for v in op.reads], [self.name() for _ in op.outputs])
        names.update(zip(op.outputs, made.outputs, strict=True))
        self.register(made, handle)
        for seq, block in zip(op.blocks, handle.blocks, strict=True):
            inner = Seq(made, block)
            made.blocks.append(inner)
            inner.inputs = [self.name() for _ in seq.inputs]
            names.update(zip(seq.inputs, inner.inputs, strict=True))
            self.value.update(zip(inner.inputs, block.inputs, strict=True))
            for each, node in zip(seq.order, block, strict=True):
                self.put(self.twin(each, node, names), inner, len(inner.order))
            inner.reads = [names.get(v, v) for v in seq.reads]
        return made

    # -- blocks and ends

    def add_block(self):
        op = self.some_op()
        if op and len(op.chain()) < 5:
            op.blocks.append(Seq(op, self.node[op].add_block()))

    def bury(self, parts):
        for each in parts:
            self.dead.extend(self.value.pop(value) for value in computed(each))
            self.dead.append(self.node.pop(each) if isinstance(each, Op) else each.handle)

    def erase_block(self):
        op = self.some_op("blocks")
        if not op:
            return
        at = self.rng.randrange(len(op.blocks))
        inside = [op.blocks[at], *(e for inner in op.blocks[at].order for e in inner.within())]
        if self.is_read_outside(inside):
            with pytest.raises(ValueError, match="used"):
                self.node[op].erase_block(at)
            return
        self.node[op].erase_block(at)
        del op.blocks[at]
        self.bury(inside)

    def destroy(self):
        op = self.some_op()
        if not op:
            return
        handle = self.node[op]
        used = any({*op.outputs} & {*each.reads} for each in self.everything())
        assert handle.has_uses() == used
        for seq in op.blocks:
            inside = [seq, *(each for inner in seq.order for each in inner.within())]
            used |= self.is_read_outside(inside)
        if used:
            with pytest.raises(ValueError, match="used"):
                handle.destroy()
            return
        handle.destroy()
        (op.place.order if op.place else self.loose).remove(op)
        self.bury(op.within())

    def add_end(self):
        seq, values = self.pick(self.seqs()), self.values()
        if self.rng.random() < 0.4 or not values:
            seq.inputs.append(self.name())
            self.value[seq.inputs[-1]] = seq.handle.add_input()
        else:
            value = self.rng.choice(values)
            assert seq.handle.register_output(self.value[value]) == len(seq.reads)
            seq.reads.append(value)

    def erase_end(self):
        seq = self.pick(self.seqs())
        if self.rng.random() < 0.5 and seq.inputs:
            at = self.rng.randrange(len(seq.inputs))
            if any(seq.inputs[at] in each.reads for each in self.everything()):
                with pytest.raises(ValueError, match="used"):
                    seq.handle.erase_input(at)
            else:
                seq.handle.erase_input(at)
                self.dead.append(self.value.pop(seq.inputs.pop(at)))
        elif seq.reads:
            at = self.rng.randrange(len(seq.reads))
            seq.handle.erase_output(at)
            del seq.reads[at]

    # -- operands and outputs

    def add_input(self):
        op, value = self.some_op(), self.pick(self.values())
        if op and value:
            self.node[op].add_input(self.value[value])
            op.reads.append(value)

    def replace_input(self):
        op = self.some_op("reads")
        if op:
            at, value = self.rng.randrange(len(op.reads)), self.pick(self.values())
            assert (
                self.node[op].replace_input(at, self.value[value]) == self.value[op.reads[at]]
            )
            op.reads[at] = value

    def remove_inputs(self):
        op = self.some_op("reads")
        if op and self.rng.random() < 0.7:
            at = self.rng.randrange(len(op.reads))
            self.node[op].remove_input(at)
            del op.reads[at]
        elif op:
            self.node[op].remove_all_inputs()
            op.reads = []

    def replace(self, old, new, spared=None):
        for each in self.everything():
            if each is not spared:
                each.reads = [new if read == old else read for read in each.reads]

    def replace_all_uses(self):
        old, new = self.pick(self.values()), self.pick(self.values())
        spared = self.some_op() if self.rng.random() < 0.3 else None
        if old:
            self.value[old].replace_all_uses_with(
                self.value[new], except_=spared and self.node[spared]
            )
            self.replace(old, new, spared)

    def replace_node(self):
        one, two = self.some_op(), self.some_op()
        if not one:
            return
        if len(one.outputs) != len(two.outputs):
            with pytest.raises(ValueError, match="outputs"):
                self.node[one].replace_all_uses_with(self.node[two])
            return
        self.node[one].replace_all_uses_with(self.node[two])
        for old, new in zip(one.outputs, two.outputs, strict=True):
            self.replace(old, new)

    def name_value(self):
        value = self.pick(self.values())
        if value:
            self.value[value].name = self.rng.choice([None, "x", "y", "x.1"])

    EDITS = (
        create, insert, insert, insert, attach, attach, move, move, clone, add_block, add_block,
        add_block, erase_block, destroy, destroy, add_end, add_end, erase_end, add_input,
        replace_input, remove_inputs, replace_all_uses, replace_node, name_value,
    )  # fmt: skip

    # -- comparing

    def compare(self):
        """Assert that the graph is what the model says."""
        graph, named = self.graph, {self.node[op]: op for op in self.ops()}
        walked = [
            each for op in self.root.order for each in op.within() if isinstance(each, Op)
        ]
        assert list(graph.nodes(nested=True)) == [self.node[op] for op in walked]
        uses = {value: Counter() for value in self.values()}
        for each in self.everything():
            for offset, read in enumerate(each.reads):
                uses[read][each, offset] += 1
        for seq in self.seqs():
            order = [self.node[op] for op in seq.order]
            assert list(seq.handle) == order == [*reversed(seq.handle)][::-1]
            assert len(seq.handle) == len(order)
            assert seq.handle.inputs == tuple(self.value[v] for v in seq.inputs)
            assert seq.handle.outputs == tuple(self.value[v] for v in seq.reads)
            if seq is not self.root:
                assert seq.handle.node == self.node[seq.owner]
        for op in self.ops():
            handle = self.node[op]
            assert handle.inputs == tuple(self.value[v] for v in op.reads)
            assert handle.outputs == tuple(self.value[v] for v in op.outputs)
            assert handle.blocks == tuple(seq.handle for seq in op.blocks)
            assert handle.closed_over == tuple(self.value[v] for v in op.closed_over())
            assert handle.attached == (op.place is not None)
            block = None if op.place in (None, self.root) else op.place.handle
            assert handle.block == block
        ends = {None if seq is self.root else seq.handle: seq for seq in self.seqs()}
        for name, value in self.value.items():
            found = Counter(
                (ends[u.user.block] if u.user.kind == "return" else named[u.user], u.offset)
                for u in value.uses
            )
            assert found == uses[name]
        for check in BY_CONSTRUCTION:
            check(graph)
        if self.is_sound(self.root, set()):
            graph.verify()
        else:
            with pytest.raises(VerifyError, match="order"):
                graph.verify()
        self.compare_order()

    def compare_order(self):
        ops = self.ops()
        for _ in range(10 if ops else 0):
            one, two = self.rng.choice(ops), self.rng.choice(ops)
            wanted = self.is_before(one, two)
            if wanted is ...:
                continue
            if wanted is None:
                with pytest.raises(ValueError, match="is_before"):
                    self.node[one].is_before(self.node[two])
            else:
                assert self.node[one].is_before(self.node[two]) == wanted
                assert self.node[two].is_after(self.node[one]) == wanted


@pytest.mark.parametrize("seed", range(2000 if SOAK else 40))
def test_random_edits_agree_with_the_model(seed):
    pair = Pair(seed)
    for _ in range(120):
        pair.rng.choice(pair.EDITS)(pair)
        pair.compare()
    for handle in pair.dead:
        with pytest.raises(StaleHandle):
            _ = handle.nodes() if hasattr(type(handle), "nodes") else handle.stage
    if pair.is_sound(pair.root, set()):
        check_copies(pair.graph)


def check_copies(graph):
    twin = graph.copy()
    assert twin == graph == parse_graph(str(graph))
    assert twin.fingerprint() == graph.fingerprint()
    for check in BY_CONSTRUCTION:
        check(twin)


@pytest.mark.parametrize("seed", range(500 if SOAK else 30))
def test_random_programs_survive_copies(seed):
    pair = Pair(10_000 + seed)
    for _ in range(150):
        pair.rng.choice(pair.EDITS)(pair)
    # Without operands every order is sound.
    for seq in pair.seqs():
        while seq.handle.outputs:
            seq.handle.erase_output(0)
    for op in pair.ops():
        pair.node[op].remove_all_inputs()
    pair.graph.verify()
    check_copies(pair.graph)
    inlined = Graph()
    inlined.inline(pair.graph, [inlined.add_input() for _ in pair.graph.inputs])
    assert inlined == pair.graph
    for node in reversed(pair.graph):
        node.destroy()
    pair.graph.verify()
