"""What the attributes of a graph hold: arrays and graphs."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t

import numpy as np

from stagedad.ir._graph cimport Graph
from stagedad.ir._slabs cimport BODY, NONE, first_station

cdef type Array = np.ndarray


cdef list held(Graph graph):
    """The arrays and graphs in the graph's own attributes, in the order of its text."""
    cdef int32_t node
    cdef list found = []
    cdef PyObject *own
    graph.check_usable()
    graph.busy += 1
    try:
        node = first_station(graph, BODY)
        while node != NONE:
            own = graph.node_recs[node].attributes
            if own != NULL:
                for value in (<dict>own).values():
                    collect(value, found)
            node = graph.station(node)
    finally:
        graph.busy -= 1
    return found


cdef int collect(object value, list found) except -1:
    if isinstance(value, (Array, Graph)):
        found.append(value)
    elif type(value) is tuple:
        for item in <tuple>value:
            collect(item, found)
    return 0


def held_graphs(Graph graph not None):
    """The graphs that attributes hold, at any depth, each once, before those that it holds."""
    graph.check_usable()
    cdef list done = []
    cdef set seen = set()
    cdef list stack = [(graph, None)]
    while stack:                         # depth first; a graph is done after what it holds
        current, waiting = stack.pop()
        if waiting is None:
            waiting = [each for each in held(current) if isinstance(each, Graph)]
        while waiting:
            inside = waiting.pop()
            if id(inside) not in seen:
                seen.add(id(inside))
                stack.append((current, waiting))
                stack.append((inside, None))
                break
        else:
            done.append(current)
    done.reverse()
    return done[1:]


def held_arrays(Graph graph not None):
    """The arrays that attributes hold, those of held graphs last, as a tuple."""
    cdef list found = []
    cdef list inside
    graph.check_usable()
    inside = held(graph)
    found.extend([each for each in inside if isinstance(each, Array)])
    if len(found) < len(inside):
        for other in held_graphs(graph):
            found.extend([each for each in held(other) if isinstance(each, Array)])
    return tuple(found)


def nesting(Graph graph not None):
    """How deep attributes hold graphs: 0 for none."""
    cdef int32_t deepest = 0
    graph.check_usable()
    for each in held(graph):
        if isinstance(each, Graph):
            deepest = max(deepest, (<Graph>each).nesting)
    return deepest
