cpdef tuple find(dict is_inside, object decide)
