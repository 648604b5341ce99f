cpdef tuple find(object decide)
