"""Tests of front/tree.py."""

import pickle
from collections import OrderedDict, namedtuple

import pytest

from stagedad.front import flatten, tree_map, unflatten
from stagedad.front.tree import LEAF

Point = namedtuple("Point", "x y")

TREES = [
    1.0,
    [],
    (1, [2, (3,)]),
    {"b": 1, "a": [2, {"c": 3}]},
    {1: "x", "a": "y"},
    OrderedDict([("b", 1), ("a", 2)]),
    Point(1, [2]),
    None,
    [None, {"n": None}, ()],
]


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_comes_back_as_it_was(value):
    leaves = []
    tree = flatten(value, leaves)
    again = unflatten(tree, leaves)
    assert again == value
    assert type(again) is type(value)
    assert tree.count == len(leaves)
    assert pickle.loads(pickle.dumps(tree)) == tree


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_equal_structures_are_equal_keys(value):
    one, two = flatten(value, []), flatten(tree_map(repr, value), [])
    assert one == two
    assert hash(one) == hash(two)


def test_other_structures_differ():
    trees = [flatten(value, []) for value in TREES]
    assert len(set(trees)) == len(TREES)
    assert flatten([1], []) != flatten((1,), [])
    assert flatten([1], []) != "tree"


def test_keys_keep_their_order_and_name_the_leaves():
    leaves = []
    tree = flatten({"b": 1, "a": {"x y": [2, 3]}, 7: Point(4, 5)} | {}, leaves)
    assert list(tree.paths("p")) == ["p.b", "p.a.x_y.0", "p.a.x_y.1", "p.7.x", "p.7.y"]
    assert flatten({"b": 1, "a": 2}, order := []) is flatten({"b": 3, "a": 4}, [])
    assert flatten({"b": 1, "a": 2}, []) != flatten({"a": 3, "b": 4}, [])
    assert order == [1, 2]


def test_a_leaf_is_a_leaf():
    assert flatten("text", []) is LEAF
    assert repr(flatten((1, {"a": 2}), [])) == "Tree(('*', {'a': '*'}))"
