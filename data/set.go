package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/distinct"
)

// Field is an array with a name.
type Field struct {
	Name  string
	Array Array
}

// X is the field "x": what a model is given. It keeps flat and dims, as [Named] does.
func X(flat any, dims ...int) Field { return Named("x", flat, dims...) }

// Y is the field "y": what a model is to answer. It keeps flat and dims, as [Named] does.
func Y(flat any, dims ...int) Field { return Named("y", flat, dims...) }

// Named is a field of any name. Dims are the lengths of the axes, examples first; see [Array] for the types of flat.
// It keeps both, as an Array does; a [Set] has dims of its own.
func Named(name string, flat any, dims ...int) Field { return Field{name, Array{flat, dims}} }

// Set is a number of examples in memory, as fields with the same first axis. It is not changed by its methods and safe
// for concurrent use.
type Set struct {
	fields []Field
	len    int
	// changes are made to each batch that is dealt out: see [Set.MapBatches].
	changes []func(Batch) (Batch, error)
}

// New makes a set of fields. Each needs a name of its own, a valid array, and as many examples as the others. The set
// keeps the slices: do not change them while it is in use.
func New(fields ...Field) (*Set, error) {
	if len(fields) == 0 {
		return nil, errors.New("data: a set needs at least one field")
	}
	s := &Set{fields: slices.Clone(fields)}
	for i, f := range fields {
		if f.Name == "" {
			return nil, fmt.Errorf("data: field %d of %d has no name", i+1, len(fields))
		}
		if err := f.Array.check(); err != nil {
			return nil, fmt.Errorf("data: field %q: %w", f.Name, err)
		}
		if len(f.Array.Dims) == 0 {
			return nil, fmt.Errorf("data: field %q has no axes, the first one must count the examples", f.Name)
		}
		if first := fields[0]; f.Array.Len() != first.Array.Len() {
			return nil, fmt.Errorf("data: field %q has %d examples, but field %q has %d", f.Name, f.Array.Len(), first.Name, first.Array.Len())
		}
		s.fields[i].Array.Dims = slices.Clone(f.Array.Dims)
	}
	if err := distinctNames(fields, fmt.Sprintf("of %d", len(fields))); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	s.len = fields[0].Array.Len()
	return s, nil
}

func distinctNames(fields []Field, of string) error {
	return distinct.Names(len(fields), of, func(i int) string { return fields[i].Name })
}

// Len is the number of examples.
func (s *Set) Len() int { return s.len }

// MapBatches is the same examples with f between them and whoever gets their batches: [Set.Batches] deals out f of each
// batch, made on several goroutines ahead of the consumer, as by [ParallelMap]. The batch that f is given is its own.
// What f makes is not kept, so a set may be of names, which f reads the files of (see [ImageFolder.Set]); a second
// MapBatches is behind the first.
//
// The set itself knows only what f is given: so it is with [Set.Fields], with Where, with [Stratified] and [Grouped],
// and with [Set.Map] and [FitPreparation], which refuse such a set.
func (s *Set) MapBatches(f func(Batch) (Batch, error)) (*Set, error) {
	if err := refuse("map batches", false, f == nil); err != nil {
		return nil, err
	}
	t := s.view(0, s.len)
	t.changes = append(slices.Clip(t.changes), f)
	return t, nil
}

// Mapped tells whether batches of the set have other fields than [Set.Fields] says, those that a function of
// [Set.MapBatches] makes.
func (s *Set) Mapped() bool { return len(s.changes) > 0 }

// Fields are the set's fields in the order of [New], as views. A function given to [Set.MapBatches] does not show in
// them.
func (s *Set) Fields() []Field { return s.view(0, s.len).fields }

// Field is the array of the field of that name, as a view. The error of a missing one lists those that are there.
func (s *Set) Field(name string) (Array, error) {
	a, err := find(s.view(0, s.len).fields, name, "the set")
	if err != nil {
		return Array{}, fmt.Errorf("data: %w", err)
	}
	return a, nil
}

// Slice is the examples i to j-1, as a view.
func (s *Set) Slice(i, j int) (*Set, error) {
	if i < 0 || j < i || j > s.len {
		return nil, fmt.Errorf("data: slice %d to %d of a set of %d examples", i, j, s.len)
	}
	return s.view(i, j), nil
}

// Gather is the examples of the given numbers, from 0, in that order, as a copy. A number may come more than once: so a
// rare class can be drawn more often.
func (s *Set) Gather(rows []int) (*Set, error) {
	for _, r := range rows {
		if r < 0 || r >= s.len {
			return nil, fmt.Errorf("data: gather example %d of a set of %d examples", r, s.len)
		}
	}
	return s.gather(rows), nil
}

// Where is the examples that keep says yes to, in their order, as a copy; it may have none. Keep gets a batch of the
// one example; its At is the example's number. The batch is a view of the set's memory, and only valid during the call.
func (s *Set) Where(keep func(example Batch) bool) (*Set, error) {
	if err := refuse("where", false, keep == nil); err != nil {
		return nil, err
	}
	var rows []int
	example := Batch{Fields: make([]Field, len(s.fields))}
	dims := make([][]int, len(s.fields))
	for k, f := range s.fields {
		dims[k] = dimsOf(f.Array, 1)
	}
	for i := range s.len {
		for k, f := range s.fields {
			example.Fields[k] = Field{f.Name, f.Array.slice(i, i+1, dims[k])}
		}
		example.At, example.Size = i, example.examples(0, 1, 1)
		if keep(example) {
			rows = append(rows, i)
		}
	}
	return s.gather(rows), nil
}

func (s *Set) view(i, j int) *Set {
	t := &Set{slices.Clone(s.fields), j - i, s.changes}
	for k, f := range s.fields {
		t.fields[k].Array = f.Array.slice(i, j, dimsOf(f.Array, t.len))
	}
	return t
}

func (s *Set) gather(rows []int) *Set {
	t := &Set{slices.Clone(s.fields), len(rows), s.changes}
	for k, f := range s.fields {
		t.fields[k].Array = f.Array.gather(rows, dimsOf(f.Array, t.len))
	}
	return t
}

// Batch is some examples of a set, for one step. A copy keeps the same Fields: change a clone of them (slices.Clone).
type Batch struct {
	Fields []Field
	// Size is the number of examples that count, no more than there are rows; rows of padding do not. 0, as in a batch
	// made by hand, has [Batch.Samples] count them. Where it is less than the rows, the field [Mask] says which count:
	// without one, a step that reports numbers refuses the batch, as they would be of all rows. A step of outputs alone
	// takes it; the code that padded it has to cut off the rows behind Size.
	Size int
	// Epoch is the pass over the set that the batch belongs to, from 0.
	Epoch int
	// At is the place of the batch's first example in the order of its epoch, from 0: with the epoch it names each
	// example apart, however they are cut into batches.
	At int
	// Resident is the set on the device that the batch is of; nil for a batch in the host's memory. Fields then has
	// [Rows], and a [Mask] if the set has one or the batch was padded; Get gathers the set's other fields.
	Resident *Resident
	// Deal is how the batch was dealt out, nil if no set dealt it out.
	Deal *Deal
	// Part says which part of a larger batch this is: see [Share].
	Part Part
	end  epochEnd
	// stack is the memory in which the batch lies before or behind others, and row where; nil if it lies alone. See
	// [Stacked].
	stack *stack
	row   int
	watch *watch // notes what the functions of a set do with the batch; nil if nothing is to be noted
}

// Field is the array of the field of that name. It allocates for a batch of a [Resident] set alone. The error of
// a missing one lists those that are there.
func (b Batch) Field(name string) (Array, error) {
	if b.Resident != nil && name != Rows {
		host, err := b.OnHost()
		if err != nil {
			return Array{}, err
		}
		b = host
	}
	a, err := find(b.Fields, name, "the batch")
	if err != nil {
		return Array{}, fmt.Errorf("data: %w", err)
	}
	return a, nil
}

// find is the array of the field of that name among those of what.
func find(fields []Field, name, what string) (Array, error) {
	for i := range fields {
		if fields[i].Name == name {
			return fields[i].Array, nil
		}
	}
	if len(fields) == 0 {
		return Array{}, fmt.Errorf("%s has no field %q, nor any other", what, name)
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = fmt.Sprintf("%q", f.Name)
	}
	return Array{}, fmt.Errorf("%s has no field %q; there are %s", what, name, strings.Join(names, ", "))
}

// InEpoch returns the epoch of the batch, and whether it is the last batch of that epoch. Known is false if the batch
// cannot tell. A batch of [Set.Batches] knows. It still knows after a function that gives one batch for each one, such
// as [Map] and [Prefetch]. It no longer knows after a function that may leave out, join or reorder batches: [Rebatch],
// [Take], [Filter], [Zip], [Interleave], [ShuffleBuffer], [Shard]. [Batch.WithEnd] sets it.
func (b Batch) InEpoch() (epoch int64, last, known bool) {
	return int64(b.Epoch), b.end == epochEnds, b.end != epochUnknown
}

// WithEnd returns the batch, which then knows whether it is the last one of its epoch. It is for batches that do not
// know (see [Batch.InEpoch]), or whose epochs are not those of their set.
func (b Batch) WithEnd(last bool) Batch {
	if b.end = epochGoesOn; last {
		b.end = epochEnds
	}
	return b
}

// forgetEnd makes *b, if it is a batch, one that does not know whether it ends its epoch.
func forgetEnd(b any) {
	if batch, ok := b.(*Batch); ok {
		batch.end = epochUnknown
	}
}

// epochEnd says whether a batch is the last one of its epoch.
type epochEnd byte

const (
	epochUnknown epochEnd = iota
	epochGoesOn
	epochEnds
)
