"""The invariants of the IR, one function each; `verify` runs them all."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t

from stagedad.errors import StagedadError, VerifyError

from stagedad.ir._graph cimport Graph
from stagedad.ir._handles cimport node_handle, value_handle
from stagedad.ir._kinds cimport attribute_defaults, infer_types, kind_index
from stagedad.ir._slabs cimport BODY, NONE, PARAM, RETURN, BlockRec, first_station, is_end


cdef object broken(str invariant, Graph graph, int32_t node, str problem):
    return VerifyError(f"verify: [{invariant}] {problem}: `{node_handle(graph, node)}`")


def check_ring(Graph graph):
    """[ring] The nodes of each block form one doubly linked ring through its return node."""
    cdef int32_t block, back, node, following
    cdef int64_t count
    for block in range(graph.block_used):
        if graph.block_recs[block].generation & 1 == 0:
            continue
        node = back = graph.block_recs[block].back
        count = -1
        while True:
            following = graph.node_recs[node].next
            count += 1
            if graph.node_recs[following].prev != node:
                raise broken("ring", graph, node, "the next node does not point back")
            if graph.node_recs[following].generation & 1 == 0:
                raise broken("ring", graph, node, "the next node was destroyed")
            if graph.node_recs[following].block != block:
                raise broken("ring", graph, following, "the node is of another block")
            if count > graph.block_recs[block].size:
                raise broken("ring", graph, node, "the ring does not close")
            node = following
            if node == back:
                break
        if count != graph.block_recs[block].size:
            size = graph.block_recs[block].size
            raise broken("ring", graph, back, f"{count} nodes, {size} counted")


def check_blocks(Graph graph):
    """[blocks] A block has one owner, which lists it; every node is in the block it names."""
    cdef int32_t block, node
    cdef set listed = {BODY}
    cdef BlockRec *rec
    for node in range(graph.node_used):
        if graph.node_recs[node].generation & 1 == 0:
            continue
        block = graph.node_recs[node].first_block
        if block != NONE and is_end(graph, node):
            raise broken("blocks", graph, node, "the node may have none")
        while block != NONE:
            if block in listed or graph.block_recs[block].owner != node:
                raise broken("blocks", graph, node, "a block has two owners")
            if graph.block_recs[block].generation & 1 == 0:
                raise broken("blocks", graph, node, "a block was destroyed")
            listed.add(block)
            block = graph.block_recs[block].next
    for block in range(graph.block_used):
        rec = &graph.block_recs[block]
        if rec.generation & 1 == 0:
            continue
        if block not in listed:
            raise broken("blocks", graph, rec.back, "no node lists the block")
        if (graph.node_recs[rec.param].block != block
                or graph.node_recs[rec.param].kind != PARAM
                or graph.node_recs[rec.back].block != block
                or graph.node_recs[rec.back].kind != RETURN):
            raise broken("blocks", graph, rec.back, "the block has lost its ends")


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
        if (graph.node_recs[node].kind == PARAM and graph.node_recs[node].input_count
                or graph.node_recs[node].kind == RETURN and offset):
            raise broken("outputs", graph, node, "param has no operands and return no outputs")


def check_order(Graph graph):
    """[order] Operands are computed before their node, in its block or around it.

    Positions rise.
    """
    cdef int32_t node = first_station(graph, BODY)
    cdef int32_t i, value
    cdef str problem
    while node != NONE:
        for i in range(graph.node_recs[node].input_count):
            value = graph.use_recs[graph.node_recs[node].first_input + i].value
            problem = scope_problem(graph, node, graph.value_recs[value].node)
            if problem is not None:
                raise broken("order", graph, node, f"operand {i} is {problem}")
        if (graph.node_recs[node].kind != RETURN
                and graph.node_recs[graph.node_recs[node].next].position
                <= graph.node_recs[node].position):
            raise broken("order", graph, node, "positions do not rise")
        node = graph.station(node)


cdef str scope_problem(Graph graph, int32_t user, int32_t producer):
    """What is wrong with `user` reading what `producer` computes, or None."""
    cdef int32_t wanted = graph.node_recs[producer].block
    cdef int32_t block
    if wanted == NONE:
        return "not computed in the graph"
    while True:
        block = graph.node_recs[user].block
        if block == wanted:
            if graph.node_recs[producer].position < graph.node_recs[user].position:
                return None
            return "computed later"
        if block <= BODY:
            return "computed in a block, and read outside it"
        user = graph.block_recs[block].owner


def check_stages(Graph graph):
    """[stage] Inputs, nodes and outputs rise in stage; a node is not before what it reads.

    What is in a block has the stage of the node that owns it.
    """
    cdef int32_t node, i, value, stage, block
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
        block = graph.node_recs[node].block
        if graph.node_recs[node].kind == RETURN:
            check_output_stages(graph, graph.block_recs[block].param, stage)
        elif block != BODY and graph.node_recs[node].stage != stage:
            raise broken("stage", graph, node, f"another stage than {stage} in a block of it")
        elif graph.node_recs[node].stage < stage:
            raise broken(
                "stage", graph, node, f"stage {graph.node_recs[node].stage} after {stage}")
        else:
            stage = graph.node_recs[node].stage
            check_output_stages(graph, node, stage)
        for i in range(graph.node_recs[node].input_count):
            value = graph.use_recs[graph.node_recs[node].first_input + i].value
            if graph.value_recs[value].stage > stage:
                raise broken("stage", graph, node, f"operand {i} is of a later stage")
        node = graph.station(node)
    stage = 0
    for i in range(graph.node_recs[RETURN].input_count):
        value = graph.use_recs[graph.node_recs[RETURN].first_input + i].value
        if graph.value_recs[value].node != PARAM:
            if graph.value_recs[value].stage < stage:
                raise broken("stage", graph, RETURN, "the stages of the outputs do not rise")
            stage = graph.value_recs[value].stage


cdef int check_output_stages(Graph graph, int32_t node, int32_t stage) except -1:
    cdef int32_t value = graph.node_recs[node].first_output
    while value != NONE:
        if graph.value_recs[value].stage != stage:
            raise broken("stage", graph, node, "an output is of another stage")
        value = graph.value_recs[value].next_output
    return 0


def check_types(Graph graph):
    """[types] Output types agree with the op's rule wherever both are known."""
    cdef int32_t node = graph.node_recs[RETURN].next
    cdef int32_t i, value
    cdef PyObject *type
    cdef dict attributes
    while node != RETURN:
        if graph.node_recs[node].kind == RETURN:
            node = graph.station(node)
            continue
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
        except (TypeError, ValueError, ArithmeticError, StagedadError) as error:
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
        node = graph.station(node)


cpdef bint compatible(object left, object right):
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
    check_ring, check_blocks, check_use_lists, check_outputs, check_order, check_stages,
    check_types, check_names,
)


def verify(Graph graph not None):
    """Run every check.  Raises VerifyError with the graph's text as a note."""
    graph.check_usable()
    graph.busy += 1
    try:
        for check in CHECKS:
            check(graph)
    finally:
        graph.busy -= 1


def nodes_of(Graph graph not None, kinds):
    """The nodes, also within blocks, of these kinds."""
    cdef int32_t node
    cdef set wanted = {kind_index(kind) for kind in kinds}
    cdef list found = []
    graph.check_usable()                 # after the last place where others may edit
    node = first_station(graph, BODY)
    while node != NONE:
        if graph.node_recs[node].kind in wanted:
            found.append(node_handle(graph, node))
        node = graph.station(node)
    return found
