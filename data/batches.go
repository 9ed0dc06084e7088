package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"runtime"
	"strings"

	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/blocks"
)

// Option is an option of [Set.Batches], like a [Remainder].
type Option interface{ deal(*dealing) }

type option func(*dealing)

func (o option) deal(d *dealing) { o(d) }

func (r Remainder) deal(d *dealing) {
	d.rest, d.chosen = r, true
}

type dealing struct {
	shuffle  bool
	seed     uint64
	rest     Remainder
	chosen   bool
	rank, of int
	shared   bool
	watch    *watch
}

// Shuffle shuffles the examples. The order depends only on the seed, the epoch and the number of examples.
func Shuffle(seed uint64) Option {
	return option(func(d *dealing) { d.shuffle, d.seed = true, seed })
}

// Batches is a [Set] divided into batches. A run of package loop accepts it as data.
type Batches struct {
	from  func(position int64, epochs int64, whole bool) iter.Seq2[Batch, error]
	whole bool
}

// All returns the batches of the first epoch.
func (b Batches) All() iter.Seq2[Batch, error] { return b.sequence(0, 1) }

// From returns the batches from a position on, 0 or more, epoch after epoch without end. Without [Kept] the remainder
// is dropped.
func (b Batches) From(position int64) iter.Seq2[Batch, error] {
	return b.sequence(position, math.MaxInt64)
}

// WholeFrom is From with each epoch's remainder, unless [Dropped] was given. Evaluations and predictions use it.
func (b Batches) WholeFrom(position int64) iter.Seq2[Batch, error] {
	b.whole = true
	return b.sequence(position, math.MaxInt64)
}

func (b Batches) sequence(position, epochs int64) iter.Seq2[Batch, error] {
	if b.from == nil {
		return failed[Batch](errNoBatches)
	}
	return b.from(position, epochs, b.whole)
}

var errNoBatches = errors.New("data: the Batches are the zero value: make them with Set.Batches")

// Batches divides the set into batches of size examples, in order by default. An epoch ends with the smaller batch of
// the remaining examples ([Kept]), which most steps compile again, or without it ([Dropped], the default in
// training).
//
// Ordered batches are views of the set's memory: write to them only in [Map], which copies them. Shuffled batches are
// copies, which the consumer may change until a step receives them. A small one keeps up to a hundred alive.
//
// An invalid argument, or a set smaller than one batch, is an error as the only item.
func (s *Set) Batches(size int, opts ...Option) Batches {
	var d dealing
	for _, opt := range opts {
		if opt != nil {
			opt.deal(&d)
		}
	}
	return Batches{from: func(position, epochs int64, whole bool) iter.Seq2[Batch, error] {
		d := d
		if whole && !d.chosen {
			d.rest = Kept
		}
		return s.batches(size, d, position, epochs)
	}}
}

func (s *Set) batches(size int, d dealing, position, epochs int64) iter.Seq2[Batch, error] {
	dealt := func(yield func(Batch, error) bool) {
		if err := s.deal(size, d, position, epochs, yield); err != nil {
			yield(Batch{}, fmt.Errorf("data: batches of %d from %d examples: %w", size, s.len, err))
		}
	}
	if len(s.changes) == 0 {
		return dealt
	}
	return parallel(dealt, runtime.GOMAXPROCS(0), func(b Batch) (_ Batch, err error) {
		w := d.watch.own()
		begin := w.now()
		makeWritable(&b)
		w.end("copy", begin)
		for _, f := range s.changes {
			if b, err = w.change(b, f); err != nil {
				break
			}
		}
		return b, err
	})
}

// Deal describes a set's batches, for a resumed run to compare.
type Deal struct {
	// Examples is the set's length. Fields are as "x float32[28 28]".
	Examples int
	Fields   []string
	// Content is a checksum of up to 4096 elements of each field of at most 16 evenly spaced examples.
	Content string
	// Remainder reports whether an epoch may end with a batch smaller than Size.
	Size      int
	Remainder bool
	// Seed is the order's, if Shuffled.
	Shuffled bool
	Seed     uint64
}

func (s *Set) dealOf(d dealing, size int) *Deal {
	all := &Deal{Examples: s.len, Size: size, Remainder: d.rest == Kept, Shuffled: d.shuffle, Seed: d.seed}
	for _, f := range s.fields {
		all.Fields = append(all.Fields, fmt.Sprintf("%s %s%v", f.Name, strings.TrimPrefix(fmt.Sprintf("%T", f.Array.Flat), "[]"), f.Array.Dims[1:]))
	}
	all.Content = s.sampled()
	return all
}

func (s *Set) sampled() string {
	const examples, numbers = 16, 4096
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, f := range s.fields {
		kind, width := arrays.Of(f.Array.Flat), f.Array.width()
		for i := range min(examples, s.len) {
			at := i * width
			if s.len > examples {
				at = i * (s.len - 1) / (examples - 1) * width
			}
			part := kind.Slice(f.Array.Flat, at, at+min(width, numbers))
			if binary.Write(sum, binary.LittleEndian, part) != nil {
				fmt.Fprintf(sum, "%q", part)
			}
		}
	}
	return fmt.Sprintf("%08x", sum.Sum32())
}

func (s *Set) deal(size int, d dealing, position, epochs int64, yield func(Batch, error) bool) error {
	switch {
	case d.rest != Dropped && d.rest != Kept:
		return fmt.Errorf("the policy for the remainder is %v, expected data.Dropped or data.Kept; data.Rebatch pads", d.rest)
	case size < 1:
		return fmt.Errorf("the size must be at least 1")
	case position < 0:
		return fmt.Errorf("from position %d: expected at least 0", position)
	case s.len == 0:
		return fmt.Errorf("the set is empty: check its source (data.New, a slice, Where, a file)")
	case d.shared && checkShare(d.rank, d.of) != nil:
		return checkShare(d.rank, d.of)
	case d.shared && size%d.of != 0:
		return errUneven(size, d.of)
	case d.shared && d.rest == Kept && s.len%size%d.of != 0:
		return fmt.Errorf("the last batch of an epoch: %w", errUneven(s.len%size, d.of))
	case s.len < size && d.rest == Dropped:
		return fmt.Errorf("the set has less than one full batch; use a smaller size, or data.Kept")
	}
	last := s.len
	if d.rest == Dropped {
		last -= s.len % size
	}
	perEpoch := int64((last-1)/size + 1)
	epoch, start := position/perEpoch, int(position%perEpoch)*size
	if d.of < 2 {
		d.of, d.shared = 1, false
	}
	dealer := s.newDealer(d, size)
	if epochs < math.MaxInt64/perEpoch {
		dealer.left = epochs*perEpoch - position
	}
	for ; epoch < epochs; epoch++ {
		dealer.shuffle(epoch)
		for i := start; i < last; i += size {
			begin := d.watch.now()
			b := dealer.batch(i, min(i+size, last), int(epoch))
			if b.end = epochGoesOn; i+size >= last {
				b.end = epochEnds
				if last < s.len && !d.chosen {
					b.left = s.len - last
				}
			}
			d.watch.end("copy", begin)
			if !yield(b, nil) {
				return nil
			}
		}
		start = 0
	}
	return nil
}

type dealer struct {
	*Set
	dealing
	deal   *Deal
	rows   []int
	layout []fieldLayout
	masked bool
	size   int
	left   int64
	// stack is of the batches from row on, if shuffled with room for free more.
	stack *stack
	row   int
	free  int
}

type fieldLayout struct {
	dims  []int
	kind  arrays.Elements
	width int
}

func (s *Set) newDealer(d dealing, size int) *dealer {
	h := &dealer{
		Set: s, dealing: d, deal: s.dealOf(d, size), size: size / d.of, layout: make([]fieldLayout, len(s.fields)), masked: s.has(Mask), left: math.MaxInt64,
	}
	for k, f := range s.fields {
		h.layout[k] = fieldLayout{dimsOf(f.Array, h.size), arrays.Of(f.Array.Flat), f.Array.width()}
	}
	if d.shuffle {
		h.rows = make([]int, s.len)
		return h
	}
	h.stack = &stack{shared: true}
	for _, f := range s.fields {
		h.stack.fields = append(h.stack.fields, f.Array.Flat)
	}
	return h
}

func (h *dealer) shuffle(epoch int64) {
	if h.rows != nil {
		arrays.Permute(h.rows, h.seed, uint64(epoch))
	}
}

func (h *dealer) batch(i, j, epoch int) Batch {
	var part Part
	if h.shared {
		part = Part{h.rank, h.of, h.examples(i, j)}
		each := (j - i) / h.of
		i += h.rank * each
		j = i + each
	}
	rows := j - i
	b := Batch{Fields: make([]Field, len(h.fields)), Epoch: epoch, At: i, Deal: h.deal, Part: part}
	switch {
	case h.rows == nil:
		b.stack, b.row = h.stack, i
	case rows == h.size:
		h.makeStack()
		b.stack, b.row = h.stack, h.row
		h.row += rows
	}
	for k := range h.fields {
		f, kind, width, dims := &h.fields[k], h.layout[k].kind, h.layout[k].width, h.layout[k].dims
		if rows != h.size {
			dims = dimsOf(f.Array, rows)
		}
		b.Fields[k].Name, b.Fields[k].Classes = f.Name, f.Classes
		switch {
		case b.stack == nil:
			b.Fields[k].Array = f.Array.gather(h.rows[i:j], dims)
		default:
			b.Fields[k].Array = Array{kind.Slice(b.stack.fields[k], b.row*width, (b.row+rows)*width), dims}
			if h.rows != nil {
				kind.Gather(b.Fields[k].Array.Flat, f.Array.Flat, h.rows[i:j], width)
			}
		}
	}
	if b.Size = rows; h.masked {
		b.Size = b.examples(0, rows, rows)
	}
	h.left--
	h.free--
	return b
}

func (h *dealer) examples(i, j int) int {
	mask, ok := Batch{Fields: h.fields}.mask()
	switch {
	case !ok:
		return j - i
	case h.rows == nil:
		return trues(mask[i:j])
	}
	n := 0
	for _, row := range h.rows[i:j] {
		if mask[row] {
			n++
		}
	}
	return n
}

func (h *dealer) makeStack() {
	if h.free > 0 {
		return
	}
	sum := 0
	for _, d := range h.layout {
		sum += h.size * d.width
	}
	h.free = 1
	if sum <= blocks.BatchNumbers {
		h.free = int(min(blocks.Steps, h.left))
	}
	h.stack, h.row = &stack{fields: make([]any, len(h.layout))}, 0
	for k, d := range h.layout {
		h.stack.fields[k] = d.kind.Make(h.free * h.size * d.width)
	}
}

// splitEpoch exceeds all epochs: a split's order is independent.
const splitEpoch = math.MaxUint64
