package flaxlike

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// ErrLabelRange is wrapped by the error about a label that is no class of the output, or an index outside an
// nn.Embedding.
var ErrLabelRange = errors.New("outside of the classes")

// ErrValue is wrapped by the error about a learning rate that is not positive, or a label or sample weight that a loss
// or metric refuses, such as a label 2 for binary_crossentropy.
var ErrValue = errors.New("out of range")

type seen struct {
	mu        sync.Mutex // guards all fields; slices are replaced, not changed
	whole     *data.Resident
	variables []variable
	layers    []layerRow
	settings  map[string]string
	arrows    []Arrow
	odds      map[string]odds
	widths    map[string]int
	optimizer *optim.Optimizer
	bounds    []bound
	weighed   []string
	looked    int
	built     map[*managed.Stepper]bool
	expected  *expected
	inputs    []described // of the last build
	described []described // of the last build for training, or else of the first build
	card      Card
	fitted    figures
	evaluated figures

	labels       map[string]string
	calibrations map[string]fitted[decision.Calibration]
	thresholds   map[string]fitted[float64]
	run, made    int64 // made: the steps of the last run
	origin       origin
	changes      atomic.Int64
}

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
	why, hint string
}

func (s *seen) take(r bound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.bounds, func(e bound) bool {
		same := e
		same.low, same.high, same.weights, same.why, same.hint = r.low, r.high, r.weights, r.why, r.hint
		return same == r && e.low >= r.low && e.high <= r.high && (e.weights == "" || e.weights == r.weights)
	}) {
		s.bounds = append(slices.Clip(s.bounds), r)
	}
}

func (s *seen) known() []bound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bounds
}

func (s *seen) weigh(field string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.weighed, field) {
		s.weighed = append(slices.Clip(s.weighed), field)
	}
}

func (m *Model) checkWeights(s step) error {
	batch := data.Batch{Fields: s.set.Fields(), Size: s.set.Len()}
	if weights, err := batch.Field(m.set.weights); m.set.weights != "" && err == nil {
		of, n := bound{weights: m.set.weights}, weights.Size()
		some := !isFloat(weights.Flat) || n == 0
		for at := 0; at < n && !some; at++ {
			some = counts(batch, of, weights, at)
		}
		if !some {
			return fmt.Errorf("field %q: the sample weights of all %d examples in the set are 0, so none would count: %w", m.set.weights, s.set.Len(), ErrValue)
		}
	}
	if s.of != m.train || len(m.set.classWeights) == 0 {
		return nil
	}
	m.seen.mu.Lock()
	fields := m.seen.weighed
	m.seen.mu.Unlock()
	for _, name := range fields {
		labels, err := batch.Field(name)
		if err != nil || labels.Size() == 0 {
			continue
		}
		some, there, missing := false, map[int]bool{}, len(m.set.classWeights)
		flat, number := reflect.ValueOf(labels.Flat), reflect.TypeFor[float64]()
		if !flat.Type().Elem().ConvertibleTo(number) {
			continue
		}
		for at := 0; at < flat.Len() && (!some || missing > 0); at++ {
			class := int(flat.Index(at).Convert(number).Float())
			if there[class] || !counts(batch, bound{weights: m.set.weights}, labels, at) {
				continue
			}
			there[class] = true
			w, named := m.set.classWeights[class]
			if some = some || !named || w > 0; named {
				missing--
			}
		}
		for _, class := range slices.Sorted(maps.Keys(m.set.classWeights)) {
			if !there[class] && !s.part {
				return fmt.Errorf("WithClassWeights names class %d, which no counted example of the set has: field %q has the classes %v: %w: "+
					"leave it out, or check the numbering of the classes", class, name, slices.Sorted(maps.Keys(there)), ErrValue)
			}
		}
		if !some {
			return fmt.Errorf("WithClassWeights: all classes that the set has, %v in field %q, weigh 0, so no example would count: %w", slices.Sorted(maps.Keys(there)), name, ErrValue)
		}
	}
	return nil
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

// fieldOf returns the field that a node has or "".
func (t *trace) fieldOf(x *graph.Node) string {
	for {
		if name := t.inputs[x]; name != "" {
			return name
		}
		switch in := x.Inputs(); {
		case len(in) == 0:
			return ""
		case x.Type() == graph.NodeTypeIdentity, x.Type() == graph.NodeTypeReshape, x.Type() == graph.NodeTypeTranspose, x.Type() == graph.NodeTypeConvertDType && in[0].DType().IsInt():
			x = in[0]
		default:
			return ""
		}
	}
}

// numbersAlone bounds float inputs to finite numbers, unless the network tests or clips them.
func (t *trace) numbersAlone(g *graph.Graph) {
	nan, infinite := map[string]bool{}, map[string]bool{}
	for _, n := range g.Nodes() {
		in := n.Inputs()
		switch n.Type() {
		case graph.NodeTypeIsNaN:
			nan[t.fieldOf(in[0])] = true
		case graph.NodeTypeIsFinite:
			nan[t.fieldOf(in[0])], infinite[t.fieldOf(in[0])] = true, true
		case graph.NodeTypeClamp:
			infinite[t.fieldOf(in[1])] = true
		case graph.NodeTypeMin, graph.NodeTypeMax:
			if of := in[0]; of.Type() != n.Type() && (of.Type() == graph.NodeTypeMin || of.Type() == graph.NodeTypeMax) {
				infinite[t.fieldOf(of.Inputs()[0])] = true
			}
		case graph.NodeTypeEqual, graph.NodeTypeNotEqual, graph.NodeTypeLessThan, graph.NodeTypeLessOrEqual, graph.NodeTypeGreaterThan, graph.NodeTypeGreaterOrEqual:
			for i, with := range in[:2] {
				of := in[1-i]
				if n.Type() == graph.NodeTypeNotEqual && of == with {
					nan[t.fieldOf(of)] = true
				}
				if of.Type() == graph.NodeTypeAbs {
					of = of.Inputs()[0]
				}
				if outputs.Infinite(with) {
					infinite[t.fieldOf(of)] = true
				}
			}
		}
	}
	for field, name := range t.inputs {
		r := bound{field: name, kind: "input", input: true, low: -math.MaxFloat64, high: math.MaxFloat64, orNaN: nan[name],
			why: "the network takes finite numbers: fill missing values (data.Numbers has Fill), clip infinite ones, or leave such examples out (Set.Where)"}
		if infinite[name] {
			r.low, r.high = math.Inf(-1), math.Inf(1)
		}
		if field.DType().IsFloat() && !(nan[name] && infinite[name]) {
			t.seen.take(r)
		}
	}
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
		}
	case signLabels:
		r.signs, r.why = true, l.Name+" takes only -1 and 1"
	case countLabels:
		r.low, r.why = 0, l.Name+" takes counts, from 0 on"
	case shareLabels, exclusiveLabels:
		r.low, r.high, r.why = -rounding, 1+rounding, l.Name+" takes numbers from 0 to 1"
		if strings.HasPrefix(l.Name, "categorical") {
			r.hint = "numbers of classes become such rows by data.OneHot"
		}
	}
	return r
}

func (r bound) classes() bool { return r.class || r.signs || r.high < 2 }

func rowsOf(l Loss, field string, output *graph.Node, weights string) (r bound, ok bool) {
	ok = l.kind().labels == exclusiveLabels
	return bound{field: field, kind: "sum of labels", weights: weights, row: outputs.Classes(output),
		why: l.Name + " takes probabilities, whose sum is 1 (or 0, a row of loss 0; a mask or sample weights leave examples out)"}, ok
}

func (m *Model) before(s step, batch data.Batch) error {
	switch {
	case s.of == m.predict:
	case m.set.noTests != nil:
		return m.set.noTests
	case s.of != m.train:
	case len(m.set.losses) == 0 && !m.set.innerLosses:
		return errors.New("the model has no loss: give New one, as WithLoss(\"mse\")\n  a network that reports its own loss by managed.AddLoss needs WithInnerLosses()")
	default:
		if err := m.noTraining(); err != nil {
			return err
		}
	}
	bounds := m.seen.known()
	m.seen.mu.Lock()
	looked := len(bounds) + len(m.seen.weighed)
	m.seen.mu.Unlock()
	switch {
	case s.set == nil:
		if err := m.seen.look(batch, false); err != nil || s.stream == nil || m.set.weights == "" || m.state.Job() != nil { // other ranks may have an example that counts
			return err
		}
		s.stream.look(batch, m.set.weights)
		if _, last, _ := batch.InEpoch(); last && s.of == m.train {
			return s.stream.check(m.set.weights)
		}
		return nil
	case *s.looked == looked:
		return nil
	}
	err := lookAt(bounds, data.Batch{Fields: s.set.Fields(), Size: s.set.Len()}, "the set", false)
	if err == nil {
		err = m.checkWeights(s)
	}
	if err == nil {
		*s.looked = looked
	}
	return err
}

func (s *seen) look(batch data.Batch, inputs bool) error {
	s.mu.Lock()
	bounds, whole, looked := s.bounds, s.whole, s.looked
	s.mu.Unlock()
	set := batch.Resident
	switch {
	case set != nil && set == whole && looked == len(bounds): // the whole set is checked once
		return nil
	case batch.Check() != nil:
		return nil
	case set == nil:
		return lookAt(bounds, batch, "the batch", inputs)
	}
	err := lookAt(bounds, data.Batch{Fields: set.Fields(), Size: set.Len()}, "the set", inputs)
	if err == nil && !inputs {
		s.mu.Lock()
		s.whole, s.looked = set, len(bounds)
		s.mu.Unlock()
	}
	return err
}

func lookAt(bounds []bound, batch data.Batch, in string, inputs bool) error {
	for _, r := range bounds {
		field, err := batch.Field(r.field)
		if err != nil || inputs && !r.input {
			continue
		}
		at, ok := r.first(field, 0)
		for ; !ok && !counts(batch, r, field, at); at, ok = r.first(field, at+1) {
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
		return fmt.Errorf("%s %w 0…%.0f: %s\n  %s", what, ErrLabelRange, r.high, r.why, hint)
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

func isFloat(flat any) bool {
	switch flat.(type) {
	case []float32, []float64:
		return true
	}
	return false
}

func isZero(flat any, at int) bool {
	switch w := flat.(type) {
	case []float32:
		return w[at] == 0
	case []float64:
		return w[at] == 0
	}
	return false
}

// first returns the index from on of the first number out of bounds; ok: none.
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

func narrow(v float64) float32 {
	if math.IsInf(v, 0) {
		return float32(v)
	}
	return float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
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
