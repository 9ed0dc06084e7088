package flaxlike

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
)

// ErrLabelRange is wrapped by the error about a label that is no class of the output.
var ErrLabelRange = errors.New("outside of the classes")

// ErrNoLoss is wrapped by the error about a model that is to train without a loss.
var ErrNoLoss = errors.New("no loss")

// seen is what a model has learned while it was built.
type seen struct {
	batch     data.Batch     // the newest one
	resident  *data.Resident // the set on the device that it is of
	whole     *data.Resident // the last one whose labels were looked at, all of them
	variables []variable
	layers    []LayerRow
	ranges    []labelRange
	checked   bool // the ranges are known, so that batches are looked at before their step
}

// labelRange is a field of integer labels, and how many classes there are. Labels of weight 0 do not matter.
type labelRange struct {
	field, weights string
	classes        int
	masked         bool // those below 0 do not count
}

// labels notes the range of a loss's labels.
func (s *seen) labels(l Loss, field string, output *managed.Node, weights string) {
	if l.Func != nil || l.Name != "sparse_categorical_crossentropy" && l.Name != maskedSparse {
		return
	}
	r := labelRange{field, weights, classesOf(output), l.Name == maskedSparse}
	if !slices.Contains(s.ranges, r) {
		s.ranges = append(s.ranges, r)
	}
}

// see notes the batch that a step is built from. Of a set on the device only the first is gathered, for its fields.
func (m *Model) see(batch data.Batch) (err error) {
	if batch.Resident == nil {
		m.seen.batch, m.seen.resident = batch, nil
		return nil
	}
	if m.seen.resident != batch.Resident {
		m.seen.batch, err = batch.OnHost()
		m.seen.resident = batch.Resident
	}
	return err
}

// before looks at a batch before its step.
func (m *Model) before(s step, batch data.Batch) error {
	if err := m.see(batch); err != nil {
		return fmt.Errorf("flaxlike: %w", err)
	}
	if s.of == m.train && len(m.set.losses) == 0 && !m.set.innerLosses {
		return fmt.Errorf("flaxlike: train: the model has %w: give New one, as WithLoss(\"mse\")\n  a network that reports its own by managed.AddLoss needs WithInnerLosses()", ErrNoLoss)
	}
	if !m.seen.checked {
		return nil
	}
	return m.seen.look(batch)
}

// check looks at the batches of the first step, when the ranges are known.
func (s *seen) check(m *Model, batches ...data.Batch) error {
	if s.checked {
		return nil
	}
	for _, b := range batches {
		if err := s.look(b); err != nil {
			return errors.Join(err, m.Wait())
		}
	}
	s.checked = true
	return nil
}

func (s *seen) look(batch data.Batch) error {
	set, in := batch.Resident, "the batch"
	if set != nil { // its batches have no labels, so all of the set's are looked at, once
		if set == s.whole {
			return nil
		}
		batch, in = data.Batch{Fields: set.Fields(), Size: set.Len()}, "the set"
	}
	for _, r := range s.ranges {
		labels, err := batch.Get(r.field)
		if err != nil {
			continue // the step says so, better
		}
		at, ok := firstOutside(labels.Flat, r)
		if ok {
			continue
		}
		if r.weights != "" && !counts(batch, r, labels) {
			continue
		}
		hint := "make the last layer wider, or number the classes from 0"
		if v := reflect.ValueOf(element(labels.Flat, at)); v.CanInt() && v.Int() < 0 {
			hint = fmt.Sprintf("labels that fill up sequences do not count in the loss %q", maskedSparse)
		}
		return fmt.Errorf("flaxlike: field %q: label %v of example %d in %s is %w 0…%d: the output has %d\n  %s",
			r.field, element(labels.Flat, at), at/max(1, labels.Size()/max(1, labels.Len())), in, ErrLabelRange, r.classes-1, r.classes, hint)
	}
	if set != nil {
		s.whole = set
	}
	return nil
}

// counts tells whether a label from outside has a weight other than 0.
func counts(batch data.Batch, r labelRange, labels data.Array) bool {
	weights, err := batch.Get(r.weights)
	w, ok := weights.Flat.([]float32)
	if err != nil || !ok || len(w) == 0 || labels.Size()%len(w) != 0 {
		return true
	}
	each := labels.Size() / len(w)
	for i := range w {
		part := data.Array{Flat: labels.Flat, Dims: []int{labels.Size()}}.Slice(i*each, (i+1)*each)
		if _, ok := firstOutside(part.Flat, r); !ok && w[i] != 0 {
			return true
		}
	}
	return false
}

// firstOutside is the place of the first integer that is not in a range; ok if there is none.
func firstOutside(flat any, r labelRange) (at int, ok bool) {
	switch f := flat.(type) {
	case []int32:
		return outside(f, r)
	case []int64:
		return outside(f, r)
	case []int16:
		return outside(f, r)
	case []int8:
		return outside(f, r)
	case []uint8:
		return outside(f, r)
	case []uint16:
		return outside(f, r)
	case []uint32:
		return outside(f, r)
	case []uint64:
		return outside(f, r)
	}
	return 0, true
}

func outside[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](flat []T, r labelRange) (int, bool) {
	for i, v := range flat {
		if v < 0 && !r.masked || v >= 0 && uint64(v) >= uint64(r.classes) {
			return i, false
		}
	}
	return 0, true
}
