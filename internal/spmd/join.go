package spmd

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Join turns the result of pjrt.Client.Partition into a program of as many replicas, the devices of one process. The
// small arrays of independent sums are one array: XLA's CPU plugin lets the devices wait for each other once per array.
func Join(partitioned []byte, devices int) (joined []byte, err error) {
	if devices < 1 || devices > most {
		return nil, fmt.Errorf("spmd: join for %d devices: expected 1 to %d", devices, most)
	}
	r, err := newRewriter(partitioned, devices)
	if err == nil {
		r.replicas = true
		err = r.join()
	}
	if err != nil {
		return nil, fmt.Errorf("spmd: join: %w", err)
	}
	return r.marshal(), nil
}

func (r *rewriter) join() error {
	if err := r.readAll(); err != nil {
		return err
	}
	for _, c := range slices.Clone(r.computations) {
		for _, l := range r.links(c) {
			x := r.exchanges[l.joined[0]]
			switch {
			case x == nil:
			case x.target == AllReduce && len(x.kinds()) == 1:
				r.joinSums(c, l.joined)
			default:
				x.in.rest, x.in.channel = x.ofReplicas(), 0
			}
		}
	}
	return r.sortAll()
}

// ofReplicas returns the fields of an exchange between replicas instead of partitions.
func (x *exchange) ofReplicas() []field {
	fields := slices.DeleteFunc(slices.Clone(x.in.rest), func(f field) bool {
		return slices.Contains([]protowire.Number{fieldReplicaGroups, fieldDeviceList, fieldIotaGroups, fieldMeshGroups, fieldGlobalIDs}, f.number)
	})
	if x.groups.size > 0 {
		for group := range slices.Chunk(x.groups.members, int(x.groups.size)) {
			fields = append(fields, field{raw: appendBytes(nil, fieldReplicaGroups, appendNumbers(nil, fieldReplicas, group))})
		}
	}
	return fields
}

// joinSums makes one all-reduce of several. Arrays above inPlaceAbove are not copied into the joint one.
func (r *rewriter) joinSums(c *computation, sums []*instruction) {
	type part struct {
		of    int64
		shape shape
		at    int64 // in the joint array, or -1
	}
	var parts []part
	var flat, control []int64
	total, small := int64(0), 0
	element := r.exchanges[sums[0]].arrays[0].element
	for _, in := range sums {
		for i, s := range r.exchanges[in].arrays {
			p := part{in.operands[i], s, -1}
			if n := s.elements(); n > 0 && n*types[element].bytes <= inPlaceAbove {
				p.at, total, small = total, total+n, small+1
			}
			parts = append(parts, p)
		}
		control = append(control, in.control...)
	}
	var operands []int64
	var results []shape
	if small > 1 {
		for _, p := range parts {
			if p.at >= 0 {
				flat = append(flat, c.add("reshape", "flat", array(element, p.shape.elements()), []int64{p.of}, nil).id)
			}
		}
		results = []shape{array(element, total)}
		operands = []int64{c.add("concatenate", "joined", results[0], flat, appendNumbers(nil, fieldDimensions, []int64{0})).id}
	}
	for i := range parts {
		if small == 1 {
			parts[i].at = -1
		}
		if parts[i].at < 0 {
			operands, results = append(operands, parts[i].of), append(results, parts[i].shape)
		}
	}
	first := r.exchanges[sums[0]]
	shape := results[0]
	if len(results) > 1 {
		shape = tupleOf(results...)
	}
	made := c.add("all-reduce", "joined", shape, operands, nil)
	made.rest, made.called, made.control = first.ofReplicas(), first.in.called, control
	result := func(i int) int64 {
		if len(results) == 1 {
			return made.id
		}
		return c.element(made.id, int64(i), results[i], "sum").id
	}
	next, joint := 0, int64(0)
	if small > 1 {
		next, joint = 1, result(0)
	}
	for _, in := range sums {
		x := r.exchanges[in]
		var own []int64
		for range x.arrays {
			p := parts[0]
			parts = parts[1:]
			id := int64(0)
			if p.at < 0 {
				id, next = result(next), next+1
			} else {
				id = c.cut(joint, p.at, p.shape).id
			}
			own = append(own, id)
		}
		if x.tuple {
			in.become("tuple", own, nil)
		} else {
			in.become("reshape", own, nil)
		}
	}
}

// cut returns the array of a shape that begins at an element of a vector.
func (c *computation) cut(vector, at int64, s shape) *instruction {
	n := s.elements()
	limits := appendNumber(appendNumber(appendNumber(nil, fieldSliceStart, at), fieldSliceLimit, at+n), fieldSliceStride, 1)
	part := c.add("slice", "sum", array(s.element, n), []int64{vector}, appendBytes(nil, fieldSliceDimensions, limits))
	return c.add("reshape", "sum", s, []int64{part.id}, nil)
}
