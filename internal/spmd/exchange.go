package spmd

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Handlers of calls.
const (
	AllReduce         = "lazo.all_reduce"
	AllGather         = "lazo.all_gather"
	ReduceScatter     = "lazo.reduce_scatter"
	AllToAll          = "lazo.all_to_all"
	CollectivePermute = "lazo.collective_permute"
	Rank              = "lazo.rank"
)

var operations = map[string]int64{"add": 0, "multiply": 1, "minimum": 2, "maximum": 3, "and": 4, "or": 5}

// types are by XLA's number.
var types = map[int64]struct {
	name       string
	bytes      int64
	operations string
}{
	1: {"pred", 1, "and or minimum maximum"},
	2: {"s8", 1, integers}, 3: {"s16", 2, integers}, 4: {"s32", 4, integers}, 5: {"s64", 8, integers},
	6: {"u8", 1, integers}, 7: {"u16", 2, integers}, 8: {"u32", 4, integers}, 9: {"u64", 8, integers},
	10: {"f16", 2, floats}, 16: {"bf16", 2, floats}, 11: {"f32", 4, floats}, 12: {"f64", 8, floats},
	15: {"c64", 8, "add multiply"}, 18: {"c128", 16, "add multiply"},
}

const (
	integers = "add multiply minimum maximum and or"
	floats   = "add multiply minimum maximum"
)

type exchange struct {
	in     *instruction
	target string
	op     int64
	groups groups
	pairs  []int64
	axis   int64 // gathered or divided
	tuple  bool  // returns an array per operand
	arrays []shape
}

// isExchange includes unknown exchanges.
func isExchange(opcode string) bool {
	for _, prefix := range []string{"all-", "collective-", "ragged-", "reduce-scatter", "send", "recv", "async-"} {
		if strings.HasPrefix(opcode, prefix) {
			return true
		}
	}
	return false
}

// Another field may change the exchange.
var known = []protowire.Number{
	fieldMetadata, fieldDimensions, fieldBackendConfig, fieldAllReduceID, fieldReplicaGroups, fieldPairs, fieldConstrainLayout,
	fieldFrontendAttributes, fieldGlobalIDs, fieldStatistics, fieldDeviceList, fieldOriginalValue, fieldIotaGroups, fieldMeshGroups,
	fieldPrecision, fieldResultAccuracy,
}

func (r *rewriter) exchange(c *computation, in *instruction) (x *exchange, err error) {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s %s of %s%s: %s", ErrUnsupported, in.opcode, in.name, c.name, r.where(in), fmt.Sprintf(format, args...))
	}
	x = &exchange{in: in}
	switch in.opcode {
	case "all-reduce":
		x.target = AllReduce
	case "all-gather", "collective-broadcast":
		x.target = AllGather
	case "reduce-scatter":
		x.target = ReduceScatter
	case "all-to-all":
		x.target = AllToAll
	case "collective-permute":
		x.target = CollectivePermute
	default:
		return nil, refuse("the exchange is not supported")
	}
	for _, f := range in.rest {
		if !slices.Contains(known, f.number) {
			return nil, refuse("its field %d is not supported", f.number)
		}
	}
	if in.channel <= 0 {
		return nil, refuse("it has no channel, and so is between replicas; expected an exchange between the %d partitions", r.ranks)
	}
	if len(in.operands) == 0 {
		return nil, refuse("it has no operand")
	}
	for _, id := range in.operands {
		s := c.byID[id].shape
		_, ok := types[s.element]
		switch {
		case !ok:
			return nil, refuse("arrays of XLA's type %d are not exchanged; expected pred, s8 to s64, u8 to u64, f16, bf16, f32, f64, c64 or c128", s.element)
		case s.dynamic:
			return nil, refuse("an operand has an axis whose length is not known before the run")
		case len(x.arrays) > 0 && x.target == AllToAll && !slices.Equal(s.dims, x.arrays[0].dims):
			return nil, refuse("its operands have different shapes")
		}
		x.arrays = append(x.arrays, s.inRows())
	}
	x.tuple = in.shape.element == typeTuple
	if err := r.reduction(x, refuse); err != nil {
		return nil, err
	}
	if x.target == CollectivePermute {
		if err := r.permutation(x, refuse); err != nil {
			return nil, err
		}
	} else if err := r.members(x, refuse); err != nil {
		return nil, err
	}
	return x, r.shapes(x, refuse)
}

type refusal func(format string, args ...any) error

func (r *rewriter) reduction(x *exchange, refuse refusal) error {
	if x.target != AllReduce && x.target != ReduceScatter {
		if len(x.in.called) > 0 {
			return refuse("it calls a computation")
		}
		return nil
	}
	if len(x.in.called) != 1 {
		return refuse("it has %d computations to reduce by, expected one", len(x.in.called))
	}
	by := r.byID[x.in.called[0]]
	root := by.byID[by.root]
	op, ok := operations[root.opcode]
	ok = ok && len(by.instructions) == 3 && len(root.operands) == 2 && root.operands[0] != root.operands[1]
	if ok {
		for _, id := range root.operands {
			ok = ok && by.byID[id].opcode == "parameter"
		}
	}
	if !ok {
		return refuse("it reduces by the computation %s, whose root is %s; expected add, multiply, minimum, maximum, \"and\" or \"or\" of its two parameters", by.name, root.opcode)
	}
	for _, s := range x.arrays {
		kind := types[s.element]
		if !slices.Contains(strings.Fields(kind.operations), root.opcode) {
			return refuse("%s of %s is not exchanged", root.opcode, kind.name)
		}
		if root.shape.element != s.element {
			return refuse("it reduces %s in another type", kind.name)
		}
	}
	x.op = op
	return nil
}

func (r *rewriter) permutation(x *exchange, refuse refusal) error {
	from, to := map[int64]bool{}, map[int64]bool{}
	for _, f := range x.in.rest {
		if f.number != fieldPairs {
			continue
		}
		data, err := f.bytes()
		if err != nil {
			return err
		}
		fields, err := fieldsOf(data)
		if err != nil {
			return err
		}
		var pair [2]int64
		for _, f := range fields {
			if f.number == fieldSource || f.number == fieldDestination {
				if pair[f.number-1], err = f.number64(); err != nil {
					return err
				}
			}
		}
		if n := int64(r.ranks); pair[0] < 0 || pair[0] >= n || pair[1] < 0 || pair[1] >= n || from[pair[0]] || to[pair[1]] {
			return refuse("the pair %d to %d is not one of %d partitions, or names one twice", pair[0], pair[1], r.ranks)
		}
		from[pair[0]], to[pair[1]] = true, true
		x.pairs = append(x.pairs, pair[:]...)
	}
	return nil
}

func (r *rewriter) members(x *exchange, refuse refusal) error {
	lists, err := x.in.groups()
	if err != nil {
		return refuse("%v", err)
	}
	global, _ := x.in.find(fieldGlobalIDs)
	reduces := x.in.opcode != "all-to-all" && x.in.opcode != "collective-broadcast"
	if reduces && global.value == 0 {
		// The one replica has all partitions.
		for _, list := range lists {
			if len(list) > 1 || list[0] != 0 {
				return refuse("its groups %v are of replicas; expected one replica", lists)
			}
		}
		lists = nil
	}
	if len(lists) == 0 {
		all := make([]int64, r.ranks)
		for i := range all {
			all[i] = int64(i)
		}
		lists = [][]int64{all}
	}
	met := make([]bool, r.ranks)
	for _, list := range lists {
		for _, member := range list {
			if member < 0 || member >= int64(r.ranks) || met[member] {
				return refuse("its groups %v name the partition %d, expected each of %d once", lists, member, r.ranks)
			}
			met[member] = true
		}
		if len(list) != len(lists[0]) {
			return refuse("its groups %v have different sizes", lists)
		}
		x.groups.members = append(x.groups.members, list...)
	}
	if len(x.groups.members) != r.ranks {
		return refuse("its groups %v do not contain each of %d partitions", lists, r.ranks)
	}
	x.groups.size = int64(len(lists[0]))
	return nil
}

func (r *rewriter) shapes(x *exchange, refuse refusal) error {
	if x.in.opcode == "all-gather" || x.in.opcode == "reduce-scatter" || x.in.opcode == "all-to-all" {
		axes, err := x.in.numbers(fieldDimensions)
		switch {
		case err != nil:
			return err
		case len(axes) > 1, len(axes) == 0 && x.in.opcode != "all-to-all":
			return refuse("it names %d axes, expected one", len(axes))
		case len(axes) == 1:
			x.axis = axes[0]
			for _, s := range x.arrays {
				if x.axis < 0 || x.axis >= int64(len(s.dims)) {
					return refuse("it has no axis %d", x.axis)
				}
			}
		}
		if x.in.opcode == "all-to-all" && (len(axes) == 0) != x.tuple {
			return refuse("it names %d axes, but whether its result is a tuple is %v: expected a tuple exactly without axes", len(axes), x.tuple)
		}
	}
	if x.in.opcode == "all-to-all" && x.tuple && int64(len(x.arrays)) != x.groups.size {
		return refuse("it has %d operands for groups of %d", len(x.arrays), x.groups.size)
	}
	results := []shape{x.in.shape}
	if x.tuple {
		results = x.in.shape.tuple
	}
	if len(results) != len(x.arrays) {
		return refuse("it has %d operands and %d results", len(x.arrays), len(results))
	}
	for i, s := range x.arrays {
		want := slices.Clone(s.dims)
		divided := false
		switch {
		case x.in.opcode == "all-gather":
			want[x.axis] *= x.groups.size
		case x.in.opcode == "reduce-scatter":
			divided, want[x.axis] = true, want[x.axis]/x.groups.size
		case x.in.opcode == "all-to-all" && !x.tuple:
			divided = true
		}
		if divided && s.dims[x.axis]%x.groups.size != 0 {
			return refuse("the axis %d of %v is not divided by groups of %d", x.axis, s.dims, x.groups.size)
		}
		if results[i].element != s.element || results[i].dynamic || !slices.Equal(results[i].dims, want) {
			return refuse("its result %d has the shape %v, expected %v", i, results[i].dims, want)
		}
	}
	return nil
}
