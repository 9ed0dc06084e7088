package cost

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Counts is what one run of a program costs on one device, counted from its HLO.
type Counts struct {
	// Matrix are the floating-point operations of products of matrices and of convolutions, by the type of their
	// operands ("f32", "bf16"): a multiplication and an addition each. Vector are all others, one for each element of a
	// result; comparisons, conversions and integers count too, as in XLA's own analysis.
	Matrix map[string]float64
	Vector float64
	// Transcendentals are elements of exp, log, tanh and their like, which are not among the FLOPs.
	Transcendentals float64
	// Bytes are read and written in the device's memory by all operations: a fusion reads its operands, or the parts of
	// them that it takes, and writes its results.
	Bytes float64
	// Exchanged is what devices exchange, the most first.
	Exchanged []Exchange
	// Largest are the largest values that are alive where the program uses the most memory.
	Largest []Value
	// Uncounted are operations whose FLOPs are not known, with their line: calls of vendors' kernels mostly.
	Uncounted []string
	// Unknown are loops of which the program does not say how often they run, with their line: each counts once.
	Unknown []string
	// Devices is how many devices the program is for.
	Devices int
}

// FLOPs are all floating-point operations.
func (c *Counts) FLOPs() float64 {
	sum := c.Vector
	for _, n := range c.Matrix {
		sum += n
	}
	return sum
}

// Sent is how many bytes a device sends: see [Exchange].
func (c *Counts) Sent() float64 {
	var sum float64
	for _, e := range c.Exchanged {
		sum += e.Sent
	}
	return sum
}

// Exchange is what all collectives of one kind over the same axes of a mesh exchange in a run. An asynchronous one is
// counted once.
type Exchange struct {
	// Kind is that of HLO: "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute".
	Kind string
	// Axes are the axes of the mesh along which the devices of a group lie, joined by ","; "" where they lie along none.
	Axes string
	// Group is how many devices exchange with each other.
	Group int
	// Bytes are those of the operands on one device, as the program has them: under half precision half as many.
	Bytes float64
	// Sent is what a device sends for that round a ring of n devices: 2(n-1)/n of the bytes for an all-reduce, (n-1)/n
	// for a reduce-scatter and an all-to-all, n-1 times the bytes for an all-gather, else the bytes.
	Sent float64
}

// ValueKind says what a value is for a program.
type ValueKind string

// The kinds.
const (
	Argument  ValueKind = "argument"
	Output    ValueKind = "output"
	Temporary ValueKind = "temporary"
)

// Value is an array in a device's memory.
type Value struct {
	Kind ValueKind
	// Name is that of the instruction in HLO that makes it, Operation what the program calls the operation, or "".
	Name, Operation string
	// Argument is its number, if it is one.
	Argument int
	Shape    string // on one device: "f32[128,512]"
	Bytes    int64  // with what the layout adds
	// Where is the line that asked for it: of the user's code, or "program:12" of the program in StableHLO; "" if
	// nothing says so.
	Where string
	// Line is that of the program in StableHLO, from 1 on; 0 where it is of no line of it, or nothing says so.
	Line int
}

// largestValues is how many are listed.
const largestValues = 10

// Count reads a program as XLA has it after its optimizations, the text of xla.Program.Optimized, and counts what a
// run costs on one device. mesh are the axes that the program was divided over, to name what is exchanged by; it may be
// nil. An error is a [FormatError] where the text is no HLO.
//
// A conditional counts as the branch that costs more. What HLO does not say is in Uncounted and Unknown.
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

// times lists names with how often they stand there.
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
