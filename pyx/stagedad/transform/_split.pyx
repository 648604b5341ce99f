"""Splitting a graph of two stages into f and df."""

from libc.stdint cimport int32_t
from libc.stdlib cimport free

from stagedad.errors import VerifyError

from stagedad.ir._clone cimport clone_input, clone_node, value_map_for
from stagedad.ir._graph cimport Graph, empty_graph
from stagedad.ir._handles cimport Value, own_value
from stagedad.ir._kinds cimport kind_index
from stagedad.ir._slabs cimport NONE, PARAM, RETURN, checked_stage, shown

cdef int32_t CONSTANT = kind_index("constant")


cdef tuple split_joint(Graph graph, list captured, int32_t outputs, int32_t all_outputs):
    """Return (f, df, captures) from f at stage 0 and df at stage 1 of one graph.

    `captured` has the indices of the values that df reads; the first `outputs` outputs are the
    caller's, those up to `all_outputs` temporaries, the others df's.
    """
    cdef dict output_offsets = {}
    cdef dict input_offsets = {}
    cdef list where = []
    cdef list returned = []
    cdef int32_t i, value
    cdef int32_t *f_values
    cdef int32_t *df_values
    cdef Graph f, df
    for i in range(graph.node_recs[RETURN].input_count):
        value = graph.use_recs[graph.node_recs[RETURN].first_input + i].value
        returned.append(value)
        if i < all_outputs:
            output_offsets.setdefault(value, i)
    value = graph.node_recs[PARAM].first_output
    i = 0
    while value != NONE and graph.value_recs[value].stage == 0:
        input_offsets[value] = i
        i += 1
        value = graph.value_recs[value].next_output
    for index in captured:
        if index in output_offsets:
            where.append((False, output_offsets[index]))
        else:
            where.append((True, input_offsets[index]))
    f_values = value_map_for(graph)
    try:
        f = stage_graph(graph, 0, [], returned[:all_outputs], f_values)
        df_values = value_map_for(graph)
        try:
            df = stage_graph(graph, 1, captured, returned[all_outputs:], df_values)
            name_origins(graph, f, f_values, df)
        finally:
            free(df_values)
    finally:
        free(f_values)
    return f, df, where


cdef int name_origins(Graph graph, Graph f, int32_t *f_values, Graph df) except -1:
    """Turn the origins in df from nodes of `graph` into the ids of values of f."""
    cdef int32_t node = df.node_recs[RETURN].next
    cdef int32_t value
    while node != RETURN:
        if df.node_recs[node].origin != NONE:
            value = graph.node_recs[df.node_recs[node].origin].first_output
            df.node_recs[node].origin = <int32_t>f.value_recs[f_values[value]].id
        node = df.node_recs[node].next
    return 0


def split_stage(Graph graph not None, stage, captures, outputs):
    """Return one stage of `graph` as a graph at stage 0, with `outputs` as its outputs.

    Its inputs: `captures`, values of earlier stages, then the inputs of that stage.  Constants
    of earlier stages are copied where they are read.

    Raises: VerifyError, naming value and node, if a node reads what is not among the inputs, or
            if an output is neither of that stage nor a capture.
    """
    cdef tuple given = tuple(captures)
    cdef tuple wanted = tuple(outputs)
    cdef int32_t number = checked_stage(stage)
    cdef list captured = [own_value(graph, <Value?>each) for each in given]
    cdef list returned = [own_value(graph, <Value?>each) for each in wanted]
    cdef int32_t *value_map
    graph.check_usable()
    value_map = value_map_for(graph)
    graph.busy += 1
    try:
        return stage_graph(graph, number, captured, returned, value_map)
    finally:
        graph.busy -= 1
        free(value_map)


cdef Graph stage_graph(
        Graph source, int32_t stage, list captured, list returned, int32_t *value_map):
    """One stage as a graph at stage 0; `value_map` gets what became of the values."""
    cdef Graph new = empty_graph()
    cdef int32_t value, node, i, operand, producer
    for index in captured:
        value_map[<int32_t>index] = clone_input(new, source, <int32_t>index)
    value = source.node_recs[PARAM].first_output
    while value != NONE:
        if source.value_recs[value].stage == stage:
            value_map[value] = clone_input(new, source, value)
        value = source.value_recs[value].next_output
    node = source.node_recs[RETURN].next
    while node != RETURN:
        if source.node_recs[node].stage == stage:
            for i in range(source.node_recs[node].input_count):
                operand = source.use_recs[source.node_recs[node].first_input + i].value
                producer = source.value_recs[operand].node
                # Constants are copied into df, never captured.
                if value_map[operand] == NONE and source.node_recs[producer].kind == CONSTANT:
                    clone_node(new, source, producer, value_map)
            clone_node(new, source, node, value_map)
        node = source.node_recs[node].next
    for i, index in enumerate(returned):
        operand = <int32_t>index
        producer = source.value_recs[operand].node
        if value_map[operand] == NONE and source.node_recs[producer].kind == CONSTANT:
            clone_node(new, source, producer, value_map)
        if value_map[operand] == NONE:
            raise VerifyError(
                f"split: output {i}, {shown(source, operand)}, is of stage "
                f"{source.value_recs[operand].stage}, not {stage}"
            )
        new.push_input(RETURN, value_map[operand])
    return new
