"""The graph as Python sees it: building, copying, looking."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

import numpy as np

from stagedad.errors import VerifyError
from stagedad.types import as_type

from stagedad.ir._handles cimport (
    Node, Value, attach_checked, input_handles, node_handle, output_handles, own_value,
    value_handle)
from stagedad.ir._kinds cimport (
    attribute_defaults, infer_types, kind_index, own_attributes, quick_types)
from stagedad.ir._slabs cimport (
    NONE, PARAM, RETURN, NodeRec, Slabs, UseRec, ValueRec, check_place, checked_stage,
    release_slabs, shared, value_map_for)

from stagedad.ir._handles import iterate
from stagedad.ir._slabs import NAME


cdef Graph empty_graph():
    return Graph.__new__(Graph)


cdef class Graph(Slabs):
    """A program in single-assignment form: inputs, nodes in topological order, outputs.

    Nodes and values get the graph's current `stage`.  Handles keep their graph alive and raise
    `StaleHandle` once what they name is destroyed.  `==` compares structure (kinds, operands,
    attributes, types, stages), not names, locations or identities; graphs are unhashable.

    >>> graph = Graph()
    >>> x = graph.add_input("f64[3]", name="x")
    >>> graph.register_output(graph.insert("mul", x, x))
    0
    """

    __hash__ = None

    def __init__(self):
        pass

    # -- building --------------------------------------------------------------------------

    def add_input(self, type=None, name=None):
        """Append an input of this type (a TensorType, its text, or None for unknown).

        A `name` that is taken gets a suffix `.1`, `.2`, ...
        """
        cdef int32_t value
        self.check_usable()
        type = as_type(type)
        if name is not None and not NAME.match(name):
            raise ValueError(f"add_input: not a name: {name!r}\nhint: letters, digits, _ and .")
        value = self.new_value(PARAM, self.current_stage, type)
        if name is not None:
            self.set_name(value, name)
        return value_handle(self, value)

    def register_output(self, Value value not None):
        """Append `value` to the outputs; returns its offset.  A value may be returned twice."""
        cdef int32_t index
        self.check_usable()
        index = own_value(self, value)
        self.push_input(RETURN, index)
        return self.node_recs[RETURN].input_count - 1

    def create(self, str kind not None, *inputs, outputs=None, location=None, scope=None,
               **attributes):
        """Return a new node that is not yet in the graph's order; `append` puts it there.

        `kind` may be an alias.  Types follow from the op's rule; a kind that is not in the
        table has `outputs` (default 1) outputs of unknown type.

        Raises: ForeignValue if an input is of another graph; ShapeError, DTypeError or
        TypeError if the op does not take these operands or attributes.
        """
        return node_handle(
            self, self.build(kind, inputs, outputs, location, scope, attributes, None)
        )

    def append(self, Node node not None):
        """Put an unattached node at the end.  Returns the node."""
        self.check_usable()
        attach_checked(self, node, RETURN)
        return node

    def insert(self, str kind not None, *inputs, outputs=None, location=None, scope=None,
               **attributes):
        """Create a node at the end.  Returns its output, or a tuple if it has not exactly one.

        Given:  %a, %b
        Do:     graph.insert("mul", %a, %b)
        Gives:  %2 = mul(%a, %b)
        """
        cdef int32_t node = self.build(kind, inputs, outputs, location, scope, attributes, None)
        self.attach(node, RETURN)
        if self.node_recs[node].output_count == 1:
            return value_handle(self, self.node_recs[node].first_output)
        return output_handles(self, node)

    def insert_typed(self, str kind not None, inputs, dict attributes, types, location=None,
                     scope=None):
        """Create a node at the end whose outputs have these types, the op's rule not asked.

        For readers of text and files, which verify afterwards.  Returns the outputs.
        """
        cdef int32_t node
        node = self.build(kind, tuple(inputs), None, location, scope, attributes, tuple(types))
        self.attach(node, RETURN)
        return output_handles(self, node)

    cdef int32_t build(self, str kind, tuple inputs, object outputs, object location,
                       object scope, dict attributes, tuple types) except -1:
        """Check everything, then make an unattached node."""
        cdef int32_t kind_id
        cdef int32_t node
        cdef int32_t i = 0
        cdef list operand_types = []
        cdef dict own
        cdef PyObject *type
        cdef PyObject *few[2]
        cdef bint small = (
            types is None and outputs is None and not attributes and len(inputs) <= 2)
        self.check_usable()
        kind_id = kind_index(kind)
        if kind_id <= RETURN:
            raise ValueError(f"create: `{kind}` is the graph's own node")
        for value in inputs:
            if not isinstance(value, Value):
                raise TypeError(
                    f"{kind}: operand {i} is not a Value: "
                    f"{value.__class__.__name__}\nhint: graph.constant(...) makes one"
                )
            type = self.value_recs[own_value(self, <Value>value)].type
            if small:
                few[i] = type
            else:
                operand_types.append(None if type == NULL else <object>type)
            i += 1
        own = own_attributes(kind_id, attributes)
        check_place(location, scope)
        if outputs is not None and not 0 <= outputs <= 0xFFFF:
            raise ValueError(f"{kind}: a node has 0 to 65535 outputs: {outputs}")
        if types is None:
            if attribute_defaults(kind_id) is None:
                types = (None,) * (1 if outputs is None else outputs)
            elif small:
                types = quick_types(kind_id, i, few)
            else:
                types = infer_types(kind_id, tuple(operand_types), own)
                if outputs is not None and outputs != len(types):
                    raise ValueError(f"{kind}: has {len(types)} outputs: {outputs} asked for")
        node = self.new_node(kind_id, self.current_stage)
        self.reserve_inputs(node, <int32_t>len(inputs))
        for value in inputs:
            self.push_input(node, (<Value>value).index)
        self.set_attributes(node, own)
        if location is not None:
            self.node_recs[node].location = shared(<PyObject *>location)
        if scope is not None:
            self.node_recs[node].scope = shared(<PyObject *>scope)
        for i in range(<int32_t>len(types)):
            self.new_value(node, self.current_stage, types[i])
        return node

    def constant(self, value, dtype=None, *, location=None):
        """Insert a constant at the end: a number, or an array held by reference.

        An array's contents are read at each run, so later changes are seen; `sd.fold` and the
        text form take the contents of the moment.
        """
        if dtype is None:
            return self.insert("constant", value=value, location=location)
        return self.insert("constant", value=value, dtype=dtype, location=location)

    def inline(self, Graph source not None, values):
        """Clone the nodes of `source` at the end, its inputs standing for `values`.

        Returns the values that stand for its outputs.
        """
        cdef int32_t *value_map
        cdef int32_t value, node, i
        cdef list mapped = []
        self.check_usable()
        source.check_usable()
        values = tuple(values)
        if len(values) != source.node_recs[PARAM].output_count:
            raise ValueError(
                f"inline: {source.node_recs[PARAM].output_count} inputs: "
                f"{len(values)} values given"
            )
        if source is self:
            raise ValueError("inline: a graph into itself\nhint: inline graph.copy()")
        for given in values:
            own_value(self, <Value?>given)
        self.assumes_real = self.assumes_real or source.assumes_real
        value_map = value_map_for(source)
        try:
            value = source.node_recs[PARAM].first_output
            for given in values:
                value_map[value] = (<Value>given).index
                value = source.value_recs[value].next_output
            node = source.node_recs[RETURN].next
            while node != RETURN:
                self.clone_node(source, node, value_map)
                node = source.node_recs[node].next
            for i in range(source.node_recs[RETURN].input_count):
                value = source.use_recs[source.node_recs[RETURN].first_input + i].value
                mapped.append(value_handle(self, value_map[value]))
        finally:
            free(value_map)
        return tuple(mapped)

    def copy(self):
        """Return an equal graph: same names, stages and order; ids counted anew."""
        cdef Graph new = Graph.__new__(Graph)
        cdef int32_t *value_map
        cdef int32_t value, node, i
        self.check_usable()
        value_map = value_map_for(self)
        try:
            value = self.node_recs[PARAM].first_output
            while value != NONE:
                new.current_stage = self.value_recs[value].stage
                value_map[value] = new.clone_input(self, value)
                value = self.value_recs[value].next_output
            node = self.node_recs[RETURN].next
            while node != RETURN:
                new.current_stage = self.node_recs[node].stage
                new.clone_node(self, node, value_map)
                node = self.node_recs[node].next
            for i in range(self.node_recs[RETURN].input_count):
                value = self.use_recs[self.node_recs[RETURN].first_input + i].value
                if value_map[value] == NONE:
                    raise VerifyError(f"copy: output {i} is not computed in the graph")
                new.push_input(RETURN, value_map[value])
            new.current_stage = self.current_stage
            new.assumes_real = self.assumes_real
        finally:
            free(value_map)
        return new

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def take_over(self):
        """Move everything into a new graph and leave this one consumed."""
        cdef Graph new = Graph.__new__(Graph)
        self.check_usable()
        release_slabs(new)
        new.node_recs, self.node_recs = self.node_recs, NULL
        new.value_recs, self.value_recs = self.value_recs, NULL
        new.use_recs, self.use_recs = self.use_recs, NULL
        new.node_used, new.node_room, new.free_node = (
            self.node_used, self.node_room, self.free_node)
        new.value_used, new.value_room, new.free_value = (
            self.value_used, self.value_room, self.free_value)
        new.use_used, new.use_room = self.use_used, self.use_room
        memcpy(new.free_runs, self.free_runs, sizeof(self.free_runs))
        new.size, new.current_stage = self.size, self.current_stage
        new.next_id, new.epoch = self.next_id, self.epoch
        new.assumes_real = self.assumes_real
        new.names, new.by_name, new.suffixes = self.names, self.by_name, self.suffixes
        self.names, self.by_name, self.suffixes = {}, {}, {}
        self.node_used = self.value_used = self.use_used = self.size = 0
        self.node_room = self.value_room = self.use_room = 0
        self.consumed = True
        return new

    # -- looking ---------------------------------------------------------------------------

    @property
    def inputs(self):
        """The inputs, as a tuple made for this call."""
        self.check_usable()
        return output_handles(self, PARAM)

    @property
    def outputs(self):
        """The outputs, as a tuple made for this call."""
        self.check_usable()
        return input_handles(self, RETURN)

    def nodes(self):
        """Iterate over the nodes in order; destroying or moving the current one is safe."""
        self.check_usable()
        return iterate(self, False)

    def __iter__(self):
        return self.nodes()

    def __reversed__(self):
        self.check_usable()
        return iterate(self, True)

    def __len__(self):
        return self.size

    def __bool__(self):
        return True

    @property
    def stage(self):
        """The stage that new nodes and values get."""
        return self.current_stage

    @stage.setter
    def stage(self, stage):
        self.current_stage = checked_stage(stage)

    def advance_stage(self):
        """Raise the stage of what is created from now on by one.  Returns the new stage."""
        self.check_usable()
        self.current_stage += 1
        return self.current_stage

    def set_stage_temporarily(self, stage):
        """Return a context manager in which new nodes and values get `stage`."""
        return _StageScope(self, checked_stage(stage))

    @property
    def constants(self):
        """The arrays held by `constant` nodes, in node order."""
        found = []
        for node in self.nodes():
            if node.kind == "constant":
                value = node.attributes["value"]
                if isinstance(value, np.ndarray):
                    found.append(value)
        return tuple(found)

    def __str__(self):
        from stagedad.ir.text import print_graph
        return print_graph(self)

    def __repr__(self):
        if self.consumed:
            return "<consumed Graph>"
        return (
            f"<Graph: {self.node_recs[PARAM].output_count} inputs, {self.size} nodes, "
            f"{self.node_recs[RETURN].input_count} outputs>"
        )

    def text(self, *, locations=False):
        """Return the text form; with `locations`, each node's file and line as a comment."""
        from stagedad.ir.text import print_graph
        return print_graph(self, locations=locations)

    def verify(self):
        """Check every invariant of the IR.  Raises VerifyError naming invariant and node."""
        from stagedad.ir.verify import verify
        self.check_usable()
        verify(self)

    def __eq__(self, other):
        if not isinstance(other, Graph):
            return NotImplemented
        from stagedad.ir.structure import equal
        return self is other or equal(self, other)

    def fingerprint(self):
        """Return a hash of structure and contents of constants, as hexadecimal text."""
        from stagedad.ir.structure import fingerprint
        return fingerprint(self)

    def memory(self):
        """Return the bytes that the slabs occupy."""
        return (
            self.node_room * sizeof(NodeRec) + self.value_room * sizeof(ValueRec)
            + self.use_room * sizeof(UseRec)
        )

    def __reduce__(self):
        from stagedad.ir.text import parse_graph, print_graph
        return parse_graph, (print_graph(self, exact=True), self.constants)


class _StageScope:
    """Context manager that sets a graph's stage and puts the old one back."""

    def __init__(self, graph, stage):
        self.graph = graph
        self.stage = stage
        self.before = None

    def __enter__(self):
        self.before = self.graph.stage
        (<Graph>self.graph).current_stage = self.stage
        return self.graph

    def __exit__(self, *exc):
        (<Graph>self.graph).current_stage = self.before
