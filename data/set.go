package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Field is an array with a name.
type Field struct {
	Name  string
	Array Array
	// Classes are the names of the numbers in an array of integers, from 0, if they have names. A [Set] has none of
	// other arrays.
	Classes []string
}

// X is [Named] "x", the model's input. It keeps flat and dims.
func X(flat any, dims ...int) Field { return Named("x", flat, dims...) }

// Y is [Named] "y", the target. It keeps flat and dims.
func Y(flat any, dims ...int) Field { return Named("y", flat, dims...) }

// Named returns a field with dims [examples, …]. It keeps both slices; a [Set] copies dims.
func Named(name string, flat any, dims ...int) Field { return Field{name, Array{flat, dims}, nil} }

// Set holds examples in memory. Its methods do not change it. It is safe for concurrent use.
type Set struct {
	fields  []Field
	len     int
	changes []func(Batch) (Batch, error)
}

// New makes a set of fields with unique names and the same number of examples. It keeps the slices.
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
		s.fields[i].Array.Dims, s.fields[i].Classes = slices.Clone(f.Array.Dims), nil
		if f.Classes != nil {
			if _, err := arrays.Integers(f.Array.Flat); err == nil {
				s.fields[i].Classes = slices.Clone(f.Classes)
			}
		}
	}
	if err := distinctNames(fields, fmt.Sprintf("of %d", len(fields))); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	s.len = fields[0].Array.Len()
	return s, nil
}

func distinctNames(fields []Field, of string) error {
	return listed.Distinct(len(fields), of, func(i int) string { return fields[i].Name })
}

func (s *Set) Len() int { return s.len }

// MapBatches returns a set whose [Set.Batches] yields f of each batch, after earlier calls' functions. f runs as in
// [ParallelMap], and may change its batch.
//
// [Set.Fields], [Set.Where], [Stratified] and [Grouped] use f's input. [Set.Map] and tables.Fit refuse such a set.
func (s *Set) MapBatches(f func(Batch) (Batch, error)) (*Set, error) {
	if err := refuse("map batches", false, f == nil); err != nil {
		return nil, err
	}
	t := s.view(0, s.len)
	t.changes = append(slices.Clip(t.changes), f)
	return t, nil
}

// Mapped reports whether the set has functions of [Set.MapBatches].
func (s *Set) Mapped() bool { return len(s.changes) > 0 }

// Fields returns views of the fields, in the order of [New].
func (s *Set) Fields() []Field { return s.view(0, s.len).fields }

// Field returns a view of the named array.
func (s *Set) Field(name string) (Array, error) {
	f, err := find(s.view(0, s.len).fields, name, "the set")
	if err != nil {
		return Array{}, fmt.Errorf("data: %w", err)
	}
	return f.Array, nil
}

// Classes returns the class names in a field, or nil.
func (s *Set) Classes(field string) []string { return Batch{Fields: s.fields}.Classes(field) }

// Slice returns examples i to j-1 as a view.
func (s *Set) Slice(i, j int) (*Set, error) {
	if i < 0 || j < i || j > s.len {
		return nil, fmt.Errorf("data: slice %d to %d of a set of %d examples", i, j, s.len)
	}
	return s.view(i, j), nil
}

// Gather returns a copy of the given examples. Indices may repeat.
func (s *Set) Gather(rows []int) (*Set, error) {
	for _, r := range rows {
		if r < 0 || r >= s.len {
			return nil, fmt.Errorf("data: gather example %d of a set of %d examples", r, s.len)
		}
	}
	return s.gather(rows), nil
}

// Where returns a copy of the examples for which keep returns true, perhaps none. keep receives a batch of one example,
// valid only during the call, whose At is the index.
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
			example.Fields[k] = Field{f.Name, f.Array.slice(i, i+1, dims[k]), f.Classes}
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

// Batch holds a step's examples. A copy shares Fields.
type Batch struct {
	Fields []Field
	// Size is the number of examples without padding rows. If 0, [Batch.Samples] counts them. If it is less than the
	// number of rows, the field [Mask] must mark the examples, or a step that reports numbers refuses the batch; drop
	// outputs from row Size on.
	Size int
	// Epoch counts from 0.
	Epoch int
	// At is the first example's position in the epoch, from 0.
	At int
	// Resident is the set in device memory, or nil. Fields then has only [Rows] and perhaps a [Mask]; [Batch.Field]
	// gathers others.
	Resident *Resident
	// Deal is nil unless a set made the batch.
	Deal  *Deal
	Part  Part
	end   epochEnd
	left  int
	stack *stack
	row   int
	watch *watch
}

// Field returns the named array. It allocates only for a [Resident] set.
func (b Batch) Field(name string) (Array, error) {
	if b.Resident != nil && name != Rows {
		host, err := b.gathered(name)
		if err != nil {
			return Array{}, err
		}
		b = host
	}
	f, err := find(b.Fields, name, "data: the batch")
	return f.Array, err
}

// Classes is as [Set.Classes].
func (b Batch) Classes(field string) []string {
	fields := b.Fields
	if r := b.Resident; r != nil && r.Set != nil {
		fields = r.fields
	}
	if f := fieldIn(fields, field); f != nil {
		return slices.Clone(f.Classes)
	}
	return nil
}

func fieldIn(fields []Field, name string) *Field {
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

func find(fields []Field, name, what string) (Field, error) {
	if f := fieldIn(fields, name); f != nil {
		return *f, nil
	}
	return Field{}, &missing{fields, name, what}
}

// missing is worded when it is read: a prediction asks each batch for a mask, which few have.
type missing struct {
	fields     []Field
	name, what string
}

func (m *missing) Error() string {
	if len(m.fields) == 0 {
		return fmt.Sprintf("%s has no field %q, nor any other", m.what, m.name)
	}
	names := make([]string, len(m.fields))
	for i, f := range m.fields {
		names[i] = fmt.Sprintf("%q", f.Name)
	}
	return fmt.Sprintf("%s has no field %q; there are %s", m.what, m.name, strings.Join(names, ", "))
}

// InEpoch returns the epoch and whether the batch is its last, known for batches of [Set.Batches] unless functions
// drop, join or reorder: [Rebatch], [Take], [Filter], [Zip], [Interleave], [ShuffleBuffer], [Shard].
func (b Batch) InEpoch() (epoch int64, last, known bool) {
	return int64(b.Epoch), b.end == epochEnds, b.end != epochUnknown
}

// LeftOut returns, for an epoch's last batch, how many examples [Set.Batches] left out because they fill no batch;
// otherwise, and with [Dropped], 0. Evaluations of package loop refuse such a batch.
func (b Batch) LeftOut() int { return b.left }

// Shuffled reports whether [Set.Batches] shuffled the examples.
func (b Batch) Shuffled() bool { return b.Deal != nil && b.Deal.Shuffled }

// WithEnd returns the batch with last as in [Batch.InEpoch].
func (b Batch) WithEnd(last bool) Batch {
	if b.end = epochGoesOn; last {
		b.end = epochEnds
	}
	return b
}

func forgetEnd(b any) {
	if batch, ok := b.(*Batch); ok {
		batch.end = epochUnknown
	}
}

type epochEnd byte

const (
	epochUnknown epochEnd = iota
	epochGoesOn
	epochEnds
)
