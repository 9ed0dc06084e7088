package hlo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/stablehlo"
)

// AllReduce reduces each operand over a group's replicas. Groups have one size and list each replica once, by its index
// in the device assignment.
func (f *Function) AllReduce(operands []compute.Value, reductionType compute.ReduceOpType, replicaGroups [][]int) ([]compute.Value, error) {
	return f.emitList(compute.OpTypeAllReduce, operands, func(v []*value) ([]*value, error) {
		if len(v) == 0 {
			return nil, errors.New("no operands, expected 1 at least")
		}
		rule, err := reductionOf(reductionType)
		if err != nil {
			return nil, err
		}
		if err := checkGroups(replicaGroups, f.b.devices.Count()); err != nil {
			return nil, err
		}
		results := make([]*value, len(v))
		for i := range v {
			if results[i] != nil {
				continue
			}
			var places []int
			var same []*value
			for j := i; j < len(v); j++ {
				if v[j].Shape().DType == v[i].Shape().DType {
					places, same = append(places, j), append(same, v[j])
				}
			}
			_, join, err := f.function(rule, v[i])
			if err != nil {
				return nil, err
			}
			joined, err := stablehlo.AllReduce(same, replicaGroups, join)
			if err != nil {
				return nil, err
			}
			for j, place := range places {
				results[place] = joined[j]
			}
		}
		return results, nil
	})
}

func checkGroups(groups [][]int, devices int) error {
	all := slices.Concat(groups...)
	ok := len(all) == devices
	for i, replica := range all {
		ok = ok && replica >= 0 && replica < devices && !slices.Contains(all[:i], replica)
	}
	for _, group := range groups {
		ok = ok && len(group) == len(groups[0])
	}
	if !ok {
		return fmt.Errorf("replica groups %v, expected each of the %d replicas once, in groups of one size", groups, devices)
	}
	return nil
}
