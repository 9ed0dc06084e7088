package flaxlike

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/outputs"
)

type bound struct {
	field     string
	kind      string
	low, high float64
	signs     bool
	whole     bool
	orNaN     bool
	row       int
	class     bool
	input     bool
	weights   string // weight 0 disables the check
	except    string // labels that are ignored, as "|255|"
	why, hint string
}

const rounding = 1e-5

func labelsOf(l Loss, field string, output *graph.Node, weights string) bound {
	r := bound{field: field, kind: "label", weights: weights, low: -math.MaxFloat32, high: math.MaxFloat32, why: l.Name + " takes finite numbers"}
	switch l.kind().labels {
	case classLabels:
		r.class, r.low, r.high = true, 0, float64(outputs.Classes(output)-1)
		r.why, r.hint = fmt.Sprintf("the output has %d", outputs.Classes(output)), "make the last layer wider, or number the classes from 0"
		if l.Name == maskedSparse {
			r.low = math.MinInt64
			for _, label := range l.Ignore {
				r.except += fmt.Sprintf("|%d|", label)
			}
		}
	case symbolLabels:
		r.low, r.high = 0, float64(outputs.Classes(output)-1)
		r.why = fmt.Sprintf("the output has %d classes, and ctc takes 1 to %g, with 0 after the last label", outputs.Classes(output), r.high)
	case signLabels:
		r.signs, r.why = true, l.Name+" takes only -1 and 1"
	case countLabels:
		r.low, r.why = 0, l.Name+" takes counts, from 0 on"
	case positiveLabels:
		r.low, r.why = 0, l.Name+" takes numbers from 0 on"
		r.hint = "for labels with a Scale use mse, with a Log of tables.Labels for the error of the logarithms"
	case shareLabels, exclusiveLabels:
		r.low, r.high, r.why = -rounding, 1+rounding, l.Name+" takes numbers from 0 to 1"
		if strings.HasPrefix(l.Name, "categorical") {
			r.hint = "numbers of classes become such rows by data.OneHot"
		}
	}
	return r
}

func rowsOf(l Loss, field string, output *graph.Node, weights string) (r bound, ok bool) {
	ok = l.kind().labels == exclusiveLabels
	return bound{field: field, kind: "sum of labels", weights: weights, row: outputs.Classes(output),
		why: l.Name + " takes probabilities, whose sum is 1 (or 0, a row of loss 0; a mask or sample weights leave examples out)"}, ok
}

func (r bound) classes() bool { return r.class || r.signs || r.high < 2 }

func lookAt(bounds []bound, batch data.Batch, in string, inputs bool) error {
	for _, r := range bounds {
		field, err := batch.Field(r.field)
		if err != nil || inputs && !r.input {
			continue
		}
		at, ok := r.first(field, 0)
		for ; !ok && (!counts(batch, r, field, at) || strings.Contains(r.except, fmt.Sprintf("|%v|", element(field.Flat, at)))); at, ok = r.first(field, at+1) {
		}
		if ok {
			continue
		}
		v := element(field.Flat, at)
		if r.row > 0 {
			v = sumOf(field.Flat, at, r.row)
		}
		what := fmt.Sprintf("field %q: %s %v of example %d in %s is", r.field, r.kind, v, at/max(1, field.Size()/max(1, field.Len())), in)
		if !r.class {
			if r.hint != "" && reflect.ValueOf(v).CanInt() {
				r.why += "\n  " + r.hint
			}
			return fmt.Errorf("%s %w: %s", what, ErrValue, r.why)
		}
		hint := r.hint
		if v := reflect.ValueOf(v); v.CanInt() && v.Int() < 0 && !r.input {
			hint = fmt.Sprintf("to leave labels of padding out, use the loss %q", maskedSparse)
		}
		return fmt.Errorf("%s %w 0…%.0f: %s\n  %s", what, outsideClasses{}, r.high, r.why, hint)
	}
	return nil
}

func counts(batch data.Batch, r bound, field data.Array, at int) bool {
	if r.weights != "" {
		weights, err := batch.Field(r.weights)
		if n := weights.Size(); err == nil && n > 0 && field.Size()%n == 0 && isZero(weights.Flat, at/(field.Size()/n)) {
			return false
		}
	}
	mask, err := batch.Field(data.Mask)
	flat, ok := mask.Flat.([]bool)
	return err != nil || !ok || len(flat) != field.Len() || flat[at/(field.Size()/field.Len())]
}

func (r bound) first(field data.Array, from int) (at int, ok bool) {
	switch f := field.Flat.(type) {
	case []float32:
		return outside(f, r, narrow(r.low), narrow(r.high), from)
	case []float64:
		return outside(f, r, r.low, r.high, from)
	case []int32:
		return outside(f, r, lowest[int32](r, math.MinInt32), highest[int32](r, math.MaxInt32), from)
	case []int64:
		return outside(f, r, lowest[int64](r, math.MinInt64), highest[int64](r, math.MaxInt64), from)
	case []int16:
		return outside(f, r, lowest[int16](r, math.MinInt16), highest[int16](r, math.MaxInt16), from)
	case []int8:
		return outside(f, r, lowest[int8](r, math.MinInt8), highest[int8](r, math.MaxInt8), from)
	case []uint8:
		return outside(f, r, lowest[uint8](r, 0), highest[uint8](r, math.MaxUint8), from)
	case []uint16:
		return outside(f, r, lowest[uint16](r, 0), highest[uint16](r, math.MaxUint16), from)
	case []uint32:
		return outside(f, r, lowest[uint32](r, 0), highest[uint32](r, math.MaxUint32), from)
	case []uint64:
		return outside(f, r, lowest[uint64](r, 0), highest[uint64](r, math.MaxUint64), from)
	case []bool:
		if at := slices.Index(f[from:], false); r.signs && at >= 0 {
			return from + at, false
		}
	}
	return 0, true
}

func lowest[T number](r bound, ofType T) T {
	if r.low <= float64(ofType) {
		return ofType
	}
	return T(r.low)
}

func highest[T number](r bound, ofType T) T {
	if r.high >= float64(ofType) {
		return ofType
	}
	return T(r.high)
}

func outside[T number](flat []T, r bound, low, high T, from int) (int, bool) {
	if r.signs {
		for i, v := range flat[from:] {
			if v != 1 && !(v < 0 && v+1 == 0) {
				return from + i, false
			}
		}
		return 0, true
	}
	if r.row > 0 {
		for ; from+r.row <= len(flat); from += r.row {
			var sum float64
			for _, v := range flat[from : from+r.row] {
				sum += float64(v)
			}
			if sum != 0 && !(math.Abs(sum-1) <= 0.01) {
				return from + r.row - 1, false
			}
		}
		return 0, true
	}
	for i, v := range flat[from:] {
		if !(v >= low && v <= high || r.orNaN && v != v) || r.whole && v != T(int64(v)) {
			return from + i, false
		}
	}
	return 0, true
}

func sumOf(flat any, at, row int) float32 {
	var sum float64
	for i := at - row + 1; i <= at; i++ {
		v := reflect.ValueOf(element(flat, i))
		sum += v.Convert(reflect.TypeFor[float64]()).Float()
	}
	return float32(sum)
}

type stream struct {
	began, some bool
}

func (s *stream) look(batch data.Batch, field string) {
	if batch.Resident != nil {
		batch = data.Batch{Fields: batch.Resident.Fields(), Size: batch.Resident.Len()}
	}
	weights, err := batch.Field(field)
	if s.some || err != nil || !isFloat(weights.Flat) || weights.Check() != nil {
		return
	}
	s.began = true
	for at := 0; at < weights.Size() && !s.some; at++ {
		s.some = counts(batch, bound{weights: field}, weights, at)
	}
}

func (s *stream) check(field string) error {
	if s.some || !s.began {
		return nil
	}
	return failure(fmt.Errorf("field %q: the sample weights of all examples so far are 0, so none would count: %w", field, ErrValue))
}
