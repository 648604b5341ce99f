"""The invariants of the IR, one function each; `verify` runs them all."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t

from stagedad.errors import VerifyError

from stagedad.ir._graph cimport Graph
from stagedad.ir._handles cimport node_handle, value_handle
from stagedad.ir._kinds cimport attribute_defaults, infer_types
from stagedad.ir._slabs cimport NONE, PARAM, RETURN


cdef object broken(str invariant, Graph graph, int32_t node, str problem):
    return VerifyError(f"verify: [{invariant}] {problem}: `{node_handle(graph, node)}`")


cdef bint attached(Graph graph, int32_t node) noexcept:
    return node <= RETURN or graph.node_recs[node].next != NONE


def check_ring(Graph graph):
    """[ring] The nodes form one doubly linked ring through the return node."""
    cdef int32_t node = RETURN
    cdef int32_t following
    cdef int64_t count = -1
    while True:
        following = graph.node_recs[node].next
        count += 1
        if graph.node_recs[following].prev != node:
            raise broken("ring", graph, node, "the next node does not point back")
        if graph.node_recs[following].generation & 1 == 0:
            raise broken("ring", graph, node, "the next node was destroyed")
        if count > graph.size:
            raise broken("ring", graph, node, "the ring does not close")
        node = following
        if node == RETURN:
            break
    if count != graph.size:
        raise broken("ring", graph, RETURN, f"{count} nodes, {graph.size} counted")


def check_use_lists(Graph graph):
    """[use-list] The uses of a value are exactly the operand slots that read it."""
    cdef int32_t node, i, use, value, count, before
    for node in range(graph.node_used):
        if graph.node_recs[node].generation & 1 == 0:
            continue
        for i in range(graph.node_recs[node].input_count):
            use = graph.node_recs[node].first_input + i
            value = graph.use_recs[use].value
            if graph.use_recs[use].user != node:
                raise broken("use-list", graph, node, f"operand {i} belongs to another node")
            if graph.value_recs[value].generation & 1 == 0:
                raise broken("use-list", graph, node, f"operand {i} was destroyed")
    for value in range(graph.value_used):
        if graph.value_recs[value].generation & 1 == 0:
            continue
        use = graph.value_recs[value].first_use
        before = NONE
        count = 0
        while use != NONE:
            if graph.use_recs[use].value != value or graph.use_recs[use].prev != before:
                raise broken("use-list", graph, graph.value_recs[value].node,
                             f"the uses of {value_handle(graph, value)!r} are not a list")
            count += 1
            before = use
            use = graph.use_recs[use].next
        if (before != graph.value_recs[value].last_use
                or count != graph.value_recs[value].use_count):
            raise broken("use-list", graph, graph.value_recs[value].node,
                         f"the uses of {value_handle(graph, value)!r} are miscounted")


def check_outputs(Graph graph):
    """[outputs] Output i of a node has offset i; param reads nothing, return gives nothing."""
    cdef int32_t node, value, offset
    for node in range(graph.node_used):
        if graph.node_recs[node].generation & 1 == 0:
            continue
        value = graph.node_recs[node].first_output
        offset = 0
        while value != NONE:
            if graph.value_recs[value].node != node or graph.value_recs[value].offset != offset:
                raise broken("outputs", graph, node, f"output {offset} is misplaced")
            offset += 1
            value = graph.value_recs[value].next_output
        if offset != graph.node_recs[node].output_count:
            raise broken("outputs", graph, node, "the outputs are miscounted")
    if graph.node_recs[PARAM].input_count or graph.node_recs[RETURN].output_count:
        raise broken("outputs", graph, PARAM, "param has no operands and return no outputs")


def check_order(Graph graph):
    """[order] Operands are computed before their node, in the graph; positions rise."""
    cdef int32_t node = RETURN
    cdef int32_t i, value, producer
    while True:
        for i in range(graph.node_recs[node].input_count):
            value = graph.use_recs[graph.node_recs[node].first_input + i].value
            producer = graph.value_recs[value].node
            if not attached(graph, producer):
                raise broken("order", graph, node, f"operand {i} is not computed in the graph")
            if graph.node_recs[producer].position >= graph.node_recs[node].position:
                raise broken("order", graph, node, f"operand {i} is computed later")
        if (graph.node_recs[node].next != RETURN and node != RETURN
                and graph.node_recs[graph.node_recs[node].next].position
                <= graph.node_recs[node].position):
            raise broken("order", graph, node, "positions do not rise")
        node = graph.node_recs[node].next
        if node == RETURN:
            break


def check_stages(Graph graph):
    """[stage] Inputs, nodes and outputs rise in stage; a node is not before what it reads."""
    cdef int32_t node, i, value, stage
    stage = 0
    value = graph.node_recs[PARAM].first_output
    while value != NONE:
        if graph.value_recs[value].stage < stage:
            raise broken("stage", graph, PARAM, "the stages of the inputs do not rise")
        stage = graph.value_recs[value].stage
        value = graph.value_recs[value].next_output
    stage = 0
    node = graph.node_recs[RETURN].next
    while node != RETURN:
        if graph.node_recs[node].stage < stage:
            raise broken(
                "stage", graph, node, f"stage {graph.node_recs[node].stage} after {stage}")
        stage = graph.node_recs[node].stage
        for i in range(graph.node_recs[node].input_count):
            value = graph.use_recs[graph.node_recs[node].first_input + i].value
            if graph.value_recs[value].stage > stage:
                raise broken("stage", graph, node, f"operand {i} is of a later stage")
        value = graph.node_recs[node].first_output
        while value != NONE:
            if graph.value_recs[value].stage != stage:
                raise broken("stage", graph, node, "an output is of another stage")
            value = graph.value_recs[value].next_output
        node = graph.node_recs[node].next
    stage = 0
    for i in range(graph.node_recs[RETURN].input_count):
        value = graph.use_recs[graph.node_recs[RETURN].first_input + i].value
        if graph.value_recs[value].node != PARAM:
            if graph.value_recs[value].stage < stage:
                raise broken("stage", graph, RETURN, "the stages of the outputs do not rise")
            stage = graph.value_recs[value].stage


def check_types(Graph graph):
    """[types] Output types agree with the op's rule wherever both are known."""
    cdef int32_t node = graph.node_recs[RETURN].next
    cdef int32_t i, value
    cdef PyObject *type
    cdef dict attributes
    while node != RETURN:
        types = []
        for i in range(graph.node_recs[node].input_count):
            value = graph.use_recs[graph.node_recs[node].first_input + i].value
            type = graph.value_recs[value].type
            types.append(None if type == NULL else <object>type)
        attributes = {}
        if graph.node_recs[node].attributes != NULL:
            attributes = <dict>graph.node_recs[node].attributes
        try:
            expected = infer_types(graph.node_recs[node].kind, tuple(types), attributes)
        except (TypeError, ValueError) as error:
            raise broken("types", graph, node, str(error).partition("\n")[0]) from error
        if attribute_defaults(graph.node_recs[node].kind) is not None and (
                len(expected) != graph.node_recs[node].output_count):
            raise broken("types", graph, node, f"the op has {len(expected)} outputs")
        value = graph.node_recs[node].first_output
        for wanted in expected:
            if value == NONE:
                break
            type = graph.value_recs[value].type
            if type != NULL and wanted is not None and not compatible(<object>type, wanted):
                raise broken(
                    "types", graph, node, f"typed {<object>type}, the op gives {wanted}")
            value = graph.value_recs[value].next_output
        node = graph.node_recs[node].next


cdef bint compatible(object left, object right):
    """Whether two types can describe one array."""
    if left is right:
        return True
    if left.dtype != right.dtype or left.device != right.device:
        return False
    if left.shape is None or right.shape is None:
        return True
    if len(left.shape) != len(right.shape):
        return False
    for one, other in zip(left.shape, right.shape, strict=True):
        if one is not None and other is not None and one != other:
            return False
    return True


def check_names(Graph graph):
    """[names] Names are unique and belong to live values; ids are distinct."""
    cdef int32_t value
    cdef set ids = set()
    for value in range(graph.value_used):
        if graph.value_recs[value].generation & 1:
            if graph.value_recs[value].id in ids or graph.value_recs[value].id >= graph.next_id:
                raise broken("names", graph, graph.value_recs[value].node, "an id stands twice")
            ids.add(graph.value_recs[value].id)
    for index, name in graph.names.items():
        if (graph.by_name.get(name) != index
                or graph.value_recs[<int32_t>index].generation & 1 == 0):
            raise broken("names", graph, PARAM, f"%{name} names no value")


CHECKS = (
    check_ring, check_use_lists, check_outputs, check_order, check_stages, check_types,
    check_names,
)


def verify(Graph graph not None):
    """Run every check.  Raises VerifyError with the graph's text as a note."""
    for check in CHECKS:
        check(graph)
