"""The graph as Python sees it: building, copying, looking."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from stagedad.errors import StaleHandle
from stagedad.types import as_type

from stagedad.ir._clone cimport (
    clone_block, clone_input, clone_node, clone_outputs, value_map_for)

from stagedad.ir._handles cimport (
    Node, Value, attach_checked, input_handles, node_handle, output_handles, own_value,
    value_handle)
from stagedad.ir._kinds cimport (
    attribute_defaults, infer_types, kind_index, own_attributes, quick_types)
from stagedad.ir._slabs cimport (
    BODY, NONE, PARAM, RETURN, BlockRec, NodeRec, Slabs, UseRec, ValueRec, check_place,
    checked_stage, release_slabs, shared)

from stagedad.ir._slabs import NAME
from stagedad.ir._walk import iterate, walk


# Freeing a graph frees those that its attributes hold, one call within the other.
cdef int MOST_NESTED = 100


cdef object checked_input(object type, object name):
    """The type of an input to be, whose name is one."""
    if name is not None and not NAME.match(name):
        raise ValueError(f"add_input: not a name: {name!r}\nhint: letters, digits, _ and .")
    return as_type(type)


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

    def __init__(self, scope_root=None):
        check_place(None, scope_root)
        self.scope_root = self.current_scope = scope_root

    # -- building --------------------------------------------------------------------------

    def add_input(self, type=None, name=None):
        """Append an input of this type (a TensorType, its text, or None for unknown).

        A `name` that is taken gets a suffix `.1`, `.2`, ...

        Given:  graph(%a)
        Do:     graph.add_input("f64[3]", name="b")
        Gives:  graph(%a, %b : f64[3])
        """
        type = checked_input(type, name)
        self.check_editable()
        return value_handle(self, self.add_param(PARAM, type, name))

    cdef int32_t add_param(self, int32_t param, object type, object name) except -1:
        """Append an input of a checked type and name to the block of the node `param`."""
        cdef int32_t value
        value = self.new_value(param, self.current_stage, type)
        if name is not None:
            self.set_name(value, name)
        return value

    def erase_input(self, Py_ssize_t i):
        """Remove input `i`, which must be unused; later inputs move up.

        Given:  graph(%a, %b, %c)
        Do:     graph.erase_input(1)
        Gives:  graph(%a, %c)
        """
        self.check_usable()
        node_handle(self, PARAM).erase_output(i)

    def erase_output(self, Py_ssize_t i):
        """Remove output `i`; later outputs move up.

        Given:  return (%2, %3, %4)
        Do:     graph.erase_output(0)
        Gives:  return (%3, %4)
        """
        self.check_usable()
        node_handle(self, RETURN).remove_input(i)

    def register_output(self, Value value not None):
        """Append `value` to the outputs; returns its offset.  A value may be returned twice.

        Given:  %1 = f(%a)
                return (%1)
        Do:     graph.register_output(%a)
        Gives:  %1 = f(%a)
                return (%1, %a)
        """
        cdef int32_t index
        self.check_editable()
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

        Given:  %1 = f(%a)
        Do:     graph.create("g", %1).insert_after(node)
        Gives:  %1 = f(%a)
                %2 = g(%1)
        """
        return node_handle(
            self, self.build(kind, inputs, outputs, location, scope, attributes, None)
        )

    def append(self, Node node not None):
        """Put an unattached node at the end (of the block, `inside` one).  Returns the node.

        Given:  %1 = f(%a)
        Do:     graph.append(graph.create("g", %1))
        Gives:  %1 = f(%a)
                %2 = g(%1)
        """
        self.check_editable()
        attach_checked(self, node, self.end_of_point())
        return node

    def prepend(self, Node node not None):
        """Put an unattached node at the beginning.  Returns the node.

        Given:  %1 = f(%a)
        Do:     graph.prepend(graph.create("g", %a))
        Gives:  %2 = g(%a)
                %1 = f(%a)
        """
        self.check_editable()
        attach_checked(self, node, self.node_recs[self.end_of_point()].next)
        return node

    def inside(self, block):
        """Return a context manager in which new nodes go to the end of `block`.

        >>> graph = Graph()
        >>> node = graph.append(graph.create("cond", graph.add_input("b1[]")))
        >>> with graph.inside(node.add_block()):
        ...     one = graph.constant(1.0)
        """
        from stagedad.ir._blocks import point_of
        self.check_editable()
        return _Setting(self, _set_point, point_of(self, block))

    def insert(self, str kind not None, *inputs, outputs=None, location=None, scope=None,
               **attributes):
        """Create a node at the end.  Returns its output, or a tuple if it has not exactly one.

        Within `graph.inside(block)`, the end is that of the block.

        Given:  %a, %b
        Do:     graph.insert("mul", %a, %b)
        Gives:  %2 = mul(%a, %b)
        """
        cdef int32_t node = self.build(kind, inputs, outputs, location, scope, attributes, None)
        self.place(node, self.point, self.point_generation)
        return self.given(node)

    cdef object given(self, int32_t node):
        """What inserting a node returns: its output, or a tuple if it has not exactly one."""
        if self.node_recs[node].output_count == 1:
            return value_handle(self, self.node_recs[node].first_output)
        return output_handles(self, node)

    def insert_typed(self, str kind not None, inputs, dict attributes, types, location=None,
                     scope=None):
        """Create a node at the end whose outputs have these types, the op's rule not asked.

        For readers of text and files, which verify afterwards.  Returns the node.

        Given:  %1 = f(%a)
        Do:     graph.insert_typed("g", [%1], {"k": 2}, [None, None])
        Gives:  %1 = f(%a)
                %2, %3 = g[k=2](%1)
        """
        cdef int32_t node
        known = tuple([as_type(each) for each in types])
        node = self.build(kind, tuple(inputs), None, location, scope, attributes, known)
        self.place(node, self.point, self.point_generation)
        return node_handle(self, node)

    cdef int place(self, int32_t node, int32_t block, uint32_t generation) except -1:
        """Attach a node at the end of a block; where that is gone, the node is freed."""
        try:
            self.attach(node, self.end_of(block, generation))
        except StaleHandle:
            self.free_node_record(node)
            raise
        return 0

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
        self.check_editable()
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
        # Attributes and type rules run Python, which may have edited the graph: look again.
        self.check_editable()
        for value in inputs:
            own_value(self, <Value>value)
        node = self.new_node(kind_id, self.current_stage)
        self.reserve_inputs(node, <int32_t>len(inputs))
        for value in inputs:
            self.push_input(node, (<Value>value).index)
        self.set_attributes(node, own)
        if location is not None:
            self.node_recs[node].location = shared(<PyObject *>location)
        if scope is None:
            scope = self.current_scope
        if scope is not None:
            self.node_recs[node].scope = shared(<PyObject *>scope)
        for i in range(<int32_t>len(types)):
            self.new_value(node, self.current_stage, types[i])
        return node

    def constant(self, value, dtype=None, *, location=None):
        """Insert a constant at the end: a number, or an array held by reference.

        An array's contents are read at each run, so later changes are seen; `sd.fold` and the
        text form take the contents of the moment.

        Given:  %1 = f(%a)
        Do:     graph.constant(2.5)
        Gives:  %1 = f(%a)
                %2 : f64[] = constant[value=2.5]()
        """
        if dtype is None:
            return self.insert("constant", value=value, location=location)
        return self.insert("constant", value=value, dtype=dtype, location=location)

    def inline(self, Graph source not None, values):
        """Clone the nodes of `source` at the end, its inputs standing for `values`.

        Returns the values that stand for its outputs.

        Given:  graph(%a)
                %1 = f(%a)
                return (%1)
        Do:     graph.inline(graph.copy(), (%1,))
        Gives:  graph(%a)
                %1 = f(%a)
                %2 = f(%1)
                return (%1)
        """
        cdef int32_t *value_map
        cdef int32_t value, i
        cdef list mapped = []
        values = tuple(values)
        self.check_editable()
        source.check_usable()
        if len(values) != source.node_recs[PARAM].output_count:
            raise ValueError(
                f"inline: {source.node_recs[PARAM].output_count} inputs: "
                f"{len(values)} values given"
            )
        if source is self:
            raise ValueError("inline: a graph into itself\nhint: inline graph.copy()")
        for given in values:
            own_value(self, <Value?>given)
        self.is_for_reals = self.is_for_reals or source.is_for_reals
        value_map = value_map_for(source)
        try:
            value = source.node_recs[PARAM].first_output
            for given in values:
                value_map[value] = (<Value>given).index
                value = source.value_recs[value].next_output
            clone_block(self, source, BODY, value_map)
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
        cdef int32_t value, node
        self.check_usable()
        value_map = value_map_for(self)
        self.busy += 1
        try:
            value = self.node_recs[PARAM].first_output
            while value != NONE:
                new.current_stage = self.value_recs[value].stage
                value_map[value] = clone_input(new, self, value)
                value = self.value_recs[value].next_output
            node = self.node_recs[RETURN].next
            while node != RETURN:
                new.current_stage = self.node_recs[node].stage
                clone_node(new, self, node, value_map)
                node = self.node_recs[node].next
            clone_outputs(new, self, BODY, value_map, RETURN)
        finally:
            self.busy -= 1
            free(value_map)
        new.current_stage = self.current_stage
        new.current_scope, new.scope_root = self.current_scope, self.scope_root
        new.is_for_reals = self.is_for_reals
        return new

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def take_over(self):
        """Move everything into a new graph and leave this one consumed.

        Given:  %1 = f(%a)
        Do:     graph = graph.take_over()
        Gives:  %1 = f(%a)
        """
        cdef Graph new = Graph.__new__(Graph)
        self.check_editable()
        release_slabs(new)
        new.node_recs, self.node_recs = self.node_recs, NULL
        new.value_recs, self.value_recs = self.value_recs, NULL
        new.use_recs, self.use_recs = self.use_recs, NULL
        new.block_recs, self.block_recs = self.block_recs, NULL
        new.node_used, new.node_room, new.free_node = (
            self.node_used, self.node_room, self.free_node)
        new.value_used, new.value_room, new.free_value = (
            self.value_used, self.value_room, self.free_value)
        new.use_used, new.use_room = self.use_used, self.use_room
        new.block_used, new.block_room, new.free_block = (
            self.block_used, self.block_room, self.free_block)
        new.point_generation = new.block_recs[BODY].generation
        memcpy(new.free_runs, self.free_runs, sizeof(self.free_runs))
        new.current_stage = self.current_stage
        new.current_scope, new.scope_root = self.current_scope, self.scope_root
        new.next_id, new.epoch = self.next_id, self.epoch
        new.is_for_reals = self.is_for_reals
        new.names, new.by_name, new.suffixes = self.names, self.by_name, self.suffixes
        self.names, self.by_name, self.suffixes = {}, {}, {}
        self.node_used = self.value_used = self.use_used = self.block_used = 0
        self.node_room = self.value_room = self.use_room = self.block_room = 0
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

    def nodes(self, *, nested=False):
        """Iterate over the nodes in order; destroying or moving the current one is safe.

        `nested` gives also what is in their blocks, each node before its own.
        """
        self.check_usable()
        if nested:
            return walk(self)
        return iterate(self, BODY, self.block_recs[BODY].generation, False)

    def __iter__(self):
        return self.nodes()

    def __reversed__(self):
        self.check_usable()
        return iterate(self, BODY, self.block_recs[BODY].generation, True)

    def __len__(self):
        return 0 if self.consumed else self.block_recs[BODY].size

    def __bool__(self):
        return True

    @property
    def assumes_real(self):
        """Whether a derivative was taken for unknown dtypes: complex values are refused."""
        return self.is_for_reals

    @assumes_real.setter
    def assumes_real(self, flag):
        self.check_editable()
        self.is_for_reals = flag

    @property
    def stage(self):
        """The stage that new nodes and values get."""
        return self.current_stage

    @stage.setter
    def stage(self, stage):
        self.check_editable()
        self.current_stage = checked_stage(stage)

    def advance_stage(self):
        """Raise the stage of what is created from now on by one.  Returns the new stage."""
        self.check_editable()
        self.current_stage = checked_stage(self.current_stage + 1)
        return self.current_stage

    def set_stage_temporarily(self, stage):
        """Return a context manager in which new nodes and values get `stage`."""
        self.check_editable()
        return _Setting(self, _set_stage, checked_stage(stage))

    @property
    def scope(self):
        """The scope that new nodes get, a path as `encoder/layer0`, or None."""
        return self.current_scope

    @scope.setter
    def scope(self, scope):
        self.check_editable()
        check_place(None, scope)
        self.current_scope = scope

    def push_scope(self, name):
        """Go one scope deeper: new nodes get the path with `/name` at its end.

        Raises: ValueError for a name with a slash: that would be several scopes.
        """
        self.check_editable()
        check_place(None, name)
        if name is None or "/" in name:
            raise ValueError(f"push_scope: not the name of one scope: {name!r}")
        self.current_scope = (
            name if self.current_scope is None else f"{self.current_scope}/{name}")

    def pop_scope(self):
        """Leave the innermost scope.  Returns its name.

        Raises: ValueError at the scope that the graph began with.
        """
        cdef str name, around, slash
        self.check_editable()
        if self.current_scope is None or self.current_scope == self.scope_root:
            raise ValueError("pop_scope: no scope was pushed")
        around, slash, name = self.current_scope.rpartition("/")
        self.current_scope = around if slash else None
        return name

    def set_scope_temporarily(self, scope):
        """Return a context manager in which new nodes get this scope, a path."""
        self.check_editable()
        check_place(None, scope)
        return _Setting(self, _set_scope, scope)

    @property
    def constants(self):
        """The arrays that attributes hold, in the order of the text form."""
        from stagedad.ir._held import held_arrays
        return held_arrays(self)

    def __str__(self):
        from stagedad.ir.text import print_graph
        return print_graph(self)

    def __repr__(self):
        if self.consumed:
            return "<consumed Graph>"
        return (
            f"<Graph: {self.node_recs[PARAM].output_count} inputs, {len(self)} nodes, "
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
            + self.use_room * sizeof(UseRec) + self.block_room * sizeof(BlockRec)
        )

    def __reduce__(self):
        from stagedad.ir.text import parse_graph, print_graph
        return parse_graph, (print_graph(self, exact=True), self.constants)


class _Setting:
    """Context manager that sets something of a graph and puts the old one back.

    Those of several threads may end in another order than they began: what was there before
    the first of them is what the last one puts back.
    """

    def __init__(self, graph, set_, wanted):
        self.graph = graph
        self.set_ = set_
        self.wanted = wanted
        self.entered = []

    def __enter__(self):
        entry = [self.set_, self.set_(self.graph, self.wanted)]
        self.entered.append(entry)
        open_settings(self.graph).append(entry)
        return self.graph

    def __exit__(self, *exc):
        entry = self.entered.pop()
        settings = open_settings(self.graph)
        i = next(i for i in range(len(settings)) if settings[i] is entry)
        del settings[i]
        for later in settings[i:]:
            if later[0] is self.set_:  # it began within this one and goes on
                later[1] = entry[1]
                return
        self.set_(self.graph, entry[1])


cdef list open_settings(Graph graph):
    """Pairs of what is set and what was there before, oldest first."""
    if graph.settings is None:
        graph.settings = []
    return graph.settings


def _set_stage(Graph graph, stage):
    """Set the stage.  Returns the old one."""
    before = graph.current_stage
    graph.current_stage = stage
    return before


def _set_scope(Graph graph, scope):
    before = graph.current_scope
    graph.current_scope = scope
    return before


def _set_point(Graph graph, point):
    before = (graph.point, graph.point_generation)
    graph.point, graph.point_generation = point
    return before


def frozen_copy(Graph graph not None):
    """A read-only copy, for an attribute to hold; a frozen graph itself.

    Nodes share their attributes with their copies, so what these hold must not change; and so
    no graph can come to hold itself.
    """
    from stagedad.ir._held import nesting
    cdef Graph made
    cdef int32_t depth
    if graph.frozen:
        return graph
    depth = nesting(graph)
    if depth >= MOST_NESTED:
        raise ValueError(f"graph: attributes hold graphs {depth} deep\nhint: inline some")
    made = graph.copy()
    made.nesting = depth + 1
    made.frozen = True
    return made
