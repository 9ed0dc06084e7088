package spmd

import "slices"

func (x *exchange) sides() (into, from []shape) {
	size := x.groups.size
	if x.in.opcode == "all-to-all" && x.tuple {
		all := array(x.arrays[0].element, append([]int64{size}, x.arrays[0].dims...)...)
		return []shape{all}, []shape{all}
	}
	for _, s := range x.arrays {
		divided := func() shape {
			dims := slices.Clone(s.dims)
			dims[x.axis] /= size
			return array(s.element, append([]int64{size}, dims...)...)
		}
		switch x.target {
		case AllGather:
			into, from = append(into, s), append(from, array(s.element, append([]int64{size}, s.dims...)...))
		case ReduceScatter:
			all := divided()
			into, from = append(into, all), append(from, array(s.element, all.dims[1:]...))
		case AllToAll:
			into, from = append(into, divided()), append(from, divided())
		default:
			into, from = append(into, s), append(from, s)
		}
	}
	return into, from
}

func (x *exchange) give(c *computation, into []shape) (operands []int64) {
	switch {
	case x.in.opcode == "all-to-all" && x.tuple:
		one := array(x.arrays[0].element, append([]int64{1}, x.arrays[0].dims...)...)
		for _, id := range x.in.operands {
			operands = append(operands, c.add("reshape", "part", one, []int64{id}, nil).id)
		}
		return []int64{c.add("concatenate", "parts", into[0], operands, appendNumbers(nil, fieldDimensions, []int64{0})).id}
	case x.target == ReduceScatter || x.target == AllToAll:
		for i, id := range x.in.operands {
			operands = append(operands, c.divide(id, x.arrays[i], x.axis, x.groups.size).id)
		}
		return operands
	}
	return x.in.operands
}

func (c *computation) divide(id int64, s shape, axis, parts int64) *instruction {
	cut := array(s.element, slices.Concat(s.dims[:axis], []int64{parts, s.dims[axis] / parts}, s.dims[axis+1:])...)
	made := c.add("reshape", "parts", cut, []int64{id}, nil)
	if axis == 0 {
		return made
	}
	order := []int64{axis}
	for i := range int64(len(cut.dims)) {
		if i != axis {
			order = append(order, i)
		}
	}
	return c.add("transpose", "parts_first", cut.inOrder(order), []int64{made.id}, appendNumbers(nil, fieldDimensions, order))
}

func (c *computation) join(id int64, parts shape, axis int64) (operand int64) {
	if axis == 0 {
		return id
	}
	var order []int64
	for i := range axis {
		order = append(order, i+1)
	}
	order = append(order, 0)
	for i := axis + 1; i < int64(len(parts.dims)); i++ {
		order = append(order, i)
	}
	return c.add("transpose", "parts_in", parts.inOrder(order), []int64{id}, appendNumbers(nil, fieldDimensions, order)).id
}

func (s shape) inOrder(order []int64) shape {
	moved := array(s.element)
	for _, axis := range order {
		moved.dims = append(moved.dims, s.dims[axis])
	}
	return moved
}

func (c *computation) element(of, at int64, s shape, name string) *instruction {
	return c.add("get-tuple-element", name, s, []int64{of}, appendNumber(nil, fieldTupleIndex, at))
}

func (x *exchange) take(c *computation, call, at int64, from []shape) {
	size := x.groups.size
	type result struct {
		opcode  string
		operand int64
		extra   []byte
		shape   shape
	}
	var results []result
	switch {
	case x.in.opcode == "all-to-all" && x.tuple:
		all := c.element(call, at, from[0], "parts").id
		one := array(from[0].element, append([]int64{1}, x.arrays[0].dims...)...)
		for i := range size {
			results = append(results, result{"reshape", c.slice(all, from[0], i, one).id, nil, x.arrays[i]})
		}
	default:
		for i, s := range from {
			index := appendNumber(nil, fieldTupleIndex, at+int64(i))
			if x.target != AllGather && x.target != AllToAll {
				results = append(results, result{"get-tuple-element", call, index, s})
				continue
			}
			all := c.element(call, at+int64(i), s, "parts").id
			whole := x.arrays[i].inRows()
			switch x.in.opcode {
			case "collective-broadcast": // of the first member
				all = c.slice(all, s, 0, array(s.element, append([]int64{1}, whole.dims...)...)).id
			default:
				if x.target == AllGather {
					whole.dims = slices.Clone(whole.dims)
					whole.dims[x.axis] *= size
				}
				all = c.join(all, s, x.axis)
			}
			results = append(results, result{"reshape", all, nil, whole})
		}
	}
	if !x.tuple {
		x.in.become(results[0].opcode, []int64{results[0].operand}, results[0].extra)
		return
	}
	var parts []int64
	for _, y := range results {
		parts = append(parts, c.add(y.opcode, x.in.name, y.shape, []int64{y.operand}, y.extra).id)
	}
	x.in.become("tuple", parts, nil)
}

func (c *computation) slice(of int64, s shape, i int64, part shape) *instruction {
	var extra []byte
	for axis, length := range s.dims {
		start := int64(0)
		if axis == 0 {
			start, length = i, i+1
		}
		limits := appendNumber(nil, fieldSliceStart, start)
		limits = appendNumber(appendNumber(limits, fieldSliceLimit, length), fieldSliceStride, 1)
		extra = appendBytes(extra, fieldSliceDimensions, limits)
	}
	return c.add("slice", "part", part, []int64{of}, extra)
}
