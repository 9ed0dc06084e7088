package cost

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Counts is a run's cost on one device.
type Counts struct {
	// Matrix has the FLOPs of matrix products and convolutions, by operand dtype ("f32", "bf16"); a multiplication and
	// an addition are 2. Vector has all others, 1 per element of a result, also of comparisons, conversions and
	// integers, as in XLA.
	Matrix map[string]float64
	Vector float64
	// Transcendentals counts elements of exp, log, tanh and similar, not in FLOPs.
	Transcendentals float64
	// Bytes counts reads and writes of device memory. A fusion reads the used parts of operands, and writes its
	// results.
	Bytes float64
	// Exchanged lists the exchanges between devices, the largest first.
	Exchanged []Exchange
	// Largest lists the largest values at the peak of memory.
	Largest []Value
	// Uncounted lists operations of unknown FLOPs, mostly vendors' kernels, with their lines.
	Uncounted []string
	// Unknown lists loops of unknown length, counted once, with their lines.
	Unknown []string
	Devices int
}

// FLOPs returns the sum of all floating-point operations.
func (c *Counts) FLOPs() float64 {
	sum := c.Vector
	for _, n := range c.Matrix {
		sum += n
	}
	return sum
}

// Sent returns the bytes that a device sends.
func (c *Counts) Sent() float64 {
	var sum float64
	for _, e := range c.Exchanged {
		sum += e.Sent
	}
	return sum
}

// Exchange sums the collectives of a kind over the same mesh axes. An asynchronous one counts once.
type Exchange struct {
	// Kind is HLO's name: "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute".
	Kind string
	// Axes names a group's mesh axes, joined by ",", or "".
	Axes  string
	Group int
	// Bytes is the operands' size on a device, in the program's dtypes.
	Bytes float64
	// Sent is the bytes that a device of a ring of n sends: Bytes times 2(n-1)/n for an all-reduce, (n-1)/n for a
	// reduce-scatter or an all-to-all, n-1 for an all-gather, else 1.
	Sent float64
}

const (
	kindArgument  = "argument"
	kindOutput    = "output"
	kindTemporary = "temporary"
)

// Value is an array in memory.
type Value struct {
	// Kind is the value's role: "argument", "output" or "temporary".
	Kind string
	// Name is the HLO instruction that makes the value, Operation the program's name for it.
	Name, Operation string
	Argument        int
	Shape           string // on one device, like "f32[128,512]"
	Bytes           int64  // with the layout's padding
	// Where is the user's line, or "program:12" for a line of the StableHLO program, or "".
	Where string
	// Line is the StableHLO program's, from 1; 0 if unknown.
	Line int
}

const largestValues = 10

// Count counts one run on one device of an optimized program (xla.Program.Optimized). mesh, which may be nil, has the
// partition's axes, to name exchanges. Non-HLO text is an error.
//
// A conditional counts as its more expensive branch.
func Count(text string, mesh []Axis) (*Counts, error) {
	m, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	counts, err := m.count(mesh)
	if err != nil {
		return nil, fmt.Errorf("cost: %s: %w", m.name, err)
	}
	return counts, nil
}

func (m *module) count(mesh []Axis) (*Counts, error) {
	for _, a := range mesh {
		if a.Size < 1 || a.Size > maxDevices {
			return nil, fmt.Errorf("axis %q of the mesh has %d devices, expected 1 to %d", a.Name, a.Size, maxDevices)
		}
	}
	c := &counter{m: m, mesh: mesh, done: map[countKey]*tally{}, stack: map[*computation]bool{}}
	c.asynchronous()
	t, err := c.computation(m.entry, false)
	if err != nil {
		return nil, err
	}
	if flops := t.flops() + t.bytes; math.IsInf(flops, 0) || math.IsNaN(flops) {
		return nil, fmt.Errorf("more than %g operations", math.MaxFloat64)
	}
	counts := &Counts{Matrix: maps.Clone(t.matrix), Vector: t.vector, Transcendentals: t.transcendentals, Bytes: t.bytes,
		Uncounted: times(t.uncounted), Unknown: slices.Sorted(maps.Keys(t.loops)), Devices: m.partitions * m.replicas}
	for k, bytes := range t.exchanges {
		counts.Exchanged = append(counts.Exchanged, Exchange{k.kind, k.axes, k.group, bytes, k.sent(bytes)})
	}
	slices.SortFunc(counts.Exchanged, func(a, b Exchange) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Axes, b.Axes), cmp.Compare(a.Group, b.Group))
	})
	counts.Largest, err = m.largest(largestValues)
	return counts, err
}

func times(names map[string]float64) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if n := names[name]; n > 1 {
			name = fmt.Sprintf("%s (%.0f times)", name, n)
		}
		list = append(list, name)
	}
	return list
}
