"""The attributes of a node as a mapping."""

from collections.abc import MutableMapping

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t

from stagedad.ops import REQUIRED

from stagedad.ir._handles cimport Node
from stagedad.ir._kinds cimport attribute_defaults, infer_types, own_attributes
from stagedad.ir._slabs cimport NodeRec, is_end


class Attributes(MutableMapping):
    """The attributes of one node, as a mapping that shows declared defaults."""

    __slots__ = ("node",)

    def __init__(self, node):
        self.node = node

    def explicit(self):
        """Return a copy of the attributes that differ from their default."""
        cdef Node node = self.node
        cdef PyObject *own = node.graph.node_recs[node.live()].attributes
        return {} if own == NULL else dict(<dict>own)

    def merged(self):
        """Return every attribute that has a value, in the order of the declaration."""
        cdef Node node = self.node
        own = self.explicit()
        defaults = attribute_defaults(node.graph.node_recs[node.live()].kind)
        if defaults is None:
            return own
        every = {k: own.pop(k, v) for k, v in defaults.items() if k in own or v is not REQUIRED}
        every.update(own)
        return every

    def __getitem__(self, name):
        cdef Node node = self.node
        cdef NodeRec *rec = &node.graph.node_recs[node.live()]
        cdef dict defaults
        if rec.attributes != NULL and name in <dict>rec.attributes:
            return (<dict>rec.attributes)[name]
        defaults = attribute_defaults(rec.kind)
        if defaults is None or defaults.get(name, REQUIRED) is REQUIRED:
            raise KeyError(name)
        return defaults[name]

    def __setitem__(self, name, value):
        own = self.explicit()
        own[name] = value
        self.assign(own)

    def assign(self, own):
        """Replace all attributes; the outputs get the types that now follow."""
        cdef Node node = self.node
        cdef int32_t index = node.editable()
        cdef int32_t kind = node.graph.node_recs[index].kind
        if is_end(node.graph, index):
            raise ValueError(f"attributes: `{node.kind}` has none")
        own = own_attributes(kind, own)
        if attribute_defaults(kind) is not None:
            types = infer_types(kind, tuple([value.type for value in node.inputs]), own)
            for value, type_ in zip(node.outputs, types):
                if type_ is not None:
                    value.type = type_
        # The rules run Python, which may have destroyed the node.
        node.graph.set_attributes(node.editable(), own)

    def __delitem__(self, name):
        own = self.explicit()
        del own[name]
        self.assign(own)

    def clear(self):
        """Bring every attribute back to its default."""
        self.assign({})

    def __iter__(self):
        return iter(self.merged())

    def __len__(self):
        return len(self.merged())

    def __repr__(self):
        return repr(self.merged())
