package selection

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/names"
)

// Parameter is one of the Values, or a number from Low to High, inclusive.
type Parameter struct {
	Name string
	// Values are distinct strings, ints, float64s or bools, all of one type.
	Values    []any
	Low, High float64
	// Integer restricts the range to integers. Log draws the logarithm uniformly; Low must be above 0.
	Integer, Log bool
}

// setting must not change: a resumed search compares it.
func (p Parameter) setting() string {
	if p.Values != nil {
		var values []string
		for _, v := range p.Values {
			values = append(values, fmt.Sprintf("%#v", v))
		}
		return fmt.Sprintf("Choice(%q, %s)", p.Name, strings.Join(values, ", "))
	}
	kind := "RealRange"
	switch {
	case p.Integer:
		kind = "IntRange"
	case p.Log:
		kind = "LogRange"
	}
	return fmt.Sprintf("%s(%q, %s, %s)", kind, p.Name, inGo(p.Low), inGo(p.High))
}

func inGo(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func checkSpace(space []Parameter) error {
	if len(space) == 0 {
		return errors.New("the Space has no parameters")
	}
	for i, p := range space {
		if p.Name == "" {
			return fmt.Errorf("parameter %d has no name", i+1)
		}
		if slices.ContainsFunc(space[:i], func(q Parameter) bool { return q.Name == p.Name }) {
			return fmt.Errorf("the parameter %q appears twice", p.Name)
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("the parameter %q: %w", p.Name, err)
		}
	}
	return nil
}

func (p Parameter) check() error {
	if p.Values != nil {
		return p.checkValues()
	}
	ends := fmt.Sprintf("Low is %s and High is %s", inGo(p.Low), inGo(p.High))
	switch {
	case !(p.Low <= p.High) || math.IsInf(p.Low, 0) || math.IsInf(p.High, 0) || math.IsInf(p.High-p.Low, 0):
		return fmt.Errorf("%s: expected finite ends, Low not above High", ends)
	case p.Low == 0 && p.High == 0:
		return errors.New("it has no Values, and Low and High are 0: give one of them")
	case p.Integer && p.Log:
		return errors.New("both Integer and Log are set, expected one of them")
	case p.Log && !(p.Low > 0):
		return fmt.Errorf("%s: expected ends above 0, which have a logarithm", ends)
	case p.Integer && (p.Low != math.Trunc(p.Low) || p.High != math.Trunc(p.High) || p.Low < -1<<53 || p.High > 1<<53):
		return fmt.Errorf("%s: expected integers of at most 2^53", ends)
	}
	return nil
}

func (p Parameter) checkValues() error {
	if p.Low != 0 || p.High != 0 || p.Integer || p.Log {
		return errors.New("it has Values and a range, expected one of them")
	}
	if len(p.Values) == 0 {
		return errors.New("it has no Values: expected one at least")
	}
	for i, v := range p.Values {
		switch f := v.(type) {
		case string, int, bool:
		case float64:
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("a value is %v, expected finite numbers", f)
			}
		default:
			return fmt.Errorf("a value is a %T, expected texts, ints, float64s or truth values", v)
		}
		if first := p.Values[0]; reflect.TypeOf(v) != reflect.TypeOf(first) {
			return fmt.Errorf("the values %#v and %#v are of two types, expected one", first, v)
		}
		if slices.Contains(p.Values[:i], v) {
			return fmt.Errorf("the value %#v appears twice", v)
		}
	}
	return nil
}

func (p Parameter) between(share float64) float64 {
	switch {
	case share <= 0:
		return p.Low
	case share >= 1:
		return p.High
	case p.Log:
		return min(p.High, max(p.Low, math.Exp(math.Log(p.Low)+share*(math.Log(p.High)-math.Log(p.Low)))))
	}
	return min(p.High, max(p.Low, p.Low+share*(p.High-p.Low)))
}

func (p Parameter) grid(points int) (values []any) {
	switch {
	case p.Values != nil:
		return p.Values
	case p.Low == p.High:
		points = 1
	case p.Integer && p.High-p.Low < float64(points):
		points = int(p.High-p.Low) + 1
	}
	for i := range points {
		v := p.between(float64(i) / float64(max(1, points-1)))
		if p.Integer {
			values = append(values, int(math.Round(v)))
		} else {
			values = append(values, v)
		}
	}
	return values
}

func (p Parameter) draw(random *rand.Rand) any {
	switch {
	case p.Values != nil:
		return p.Values[random.IntN(len(p.Values))]
	case p.Integer:
		return int(p.Low) + int(random.Int64N(int64(p.High-p.Low)+1))
	}
	return p.between(random.Float64())
}

func (p Parameter) size() float64 {
	switch {
	case p.Values != nil:
		return float64(len(p.Values))
	case p.Integer:
		return p.High - p.Low + 1
	case p.Low == p.High:
		return 1
	}
	return math.Inf(1)
}

type method struct {
	kind                           string
	points, trials, epochs, factor int
	bayesian, asynchronous         bool
}

func (s Search) method() method {
	switch {
	case s.Grid != 0:
		return method{kind: "GridSearch", points: s.Grid}
	case s.FirstEpochs != 0 || s.Factor != 0:
		return method{"SuccessiveHalving", 0, s.Trials, s.FirstEpochs, s.Factor, s.Bayesian, s.Asynchronous}
	}
	return method{kind: "RandomSearch", trials: s.Trials, bayesian: s.Bayesian}
}

func (m method) String() (text string) {
	switch m.kind {
	case "GridSearch":
		return fmt.Sprintf("GridSearch(%d)", m.points)
	case "SuccessiveHalving":
		text = fmt.Sprintf("SuccessiveHalving(%d, %d, %d)", m.trials, m.epochs, m.factor)
	default:
		text = fmt.Sprintf("RandomSearch(%d)", m.trials)
	}
	if m.asynchronous {
		text += ", Asynchronous"
	}
	if m.bayesian {
		text += ", Bayesian"
	}
	return text
}

const mostTrials = 1_000_000

func (s Search) checkMethod() error {
	m := s.method()
	switch {
	case s.Grid == 0 && s.Trials == 0:
		return errors.New("both Trials and Grid are 0: expected the number of trials to draw, or the number of points of a range to try")
	case s.Grid != 0 && (s.Trials != 0 || s.FirstEpochs != 0 || s.Factor != 0):
		return errors.New("got Grid with Trials, FirstEpochs or Factor: expected only Grid, since a grid runs all trials")
	case s.Grid != 0 && s.Bayesian:
		return errors.New("got Grid with Bayesian: expected one of them")
	case s.Asynchronous && !m.halving():
		return errors.New("got Asynchronous without FirstEpochs and Factor, whose trials it continues")
	case s.PruneAfter < 0 || s.PruneAfter > 0 && m.halving():
		return fmt.Errorf("got PruneAfter %d: expected 0 or more, and 0 with FirstEpochs, which ends trials itself", s.PruneAfter)
	case s.Grid != 0 && s.Grid < 2:
		return fmt.Errorf("got Grid %d: expected at least two points of a range, its ends", s.Grid)
	case s.Grid == 0 && (s.Trials < 1 || s.Trials > mostTrials):
		return fmt.Errorf("got Trials %d: expected 1 to %d", s.Trials, mostTrials)
	case m.halving() && (m.epochs < 1 || m.factor < 2):
		return fmt.Errorf("got FirstEpochs %d and Factor %d: expected at least one epoch, and a factor of at least 2", m.epochs, m.factor)
	}
	for _, r := range m.rungs(m.trials) {
		if r.epochs > math.MaxInt32 {
			return fmt.Errorf("got Trials %d, FirstEpochs %d and Factor %d: the last trials would have %d epochs", m.trials, m.epochs, m.factor, r.epochs)
		}
	}
	return nil
}

func (m method) halving() bool { return m.kind == "SuccessiveHalving" }

// rung.epochs is 0 for the Fit's.
type rung struct{ trials, epochs int }

func (m method) rungs(trials int) (all []rung) {
	if !m.halving() {
		return []rung{{trials, 0}}
	}
	for n, epochs := trials, m.epochs; n >= 1; n, epochs = n/m.factor, epochs*m.factor {
		all = append(all, rung{n, epochs})
		if epochs > math.MaxInt32 {
			break
		}
	}
	return all
}

func (m method) valuesOf(space []Parameter, seed uint64) (trials [][]any, err error) {
	if m.points > 0 {
		trials = [][]any{nil}
		for _, p := range space {
			values, longer := p.grid(m.points), [][]any(nil)
			if len(trials)*len(values) > mostTrials {
				return nil, fmt.Errorf("got Grid %d: that makes more than %d trials", m.points, mostTrials)
			}
			for _, t := range trials {
				for _, v := range values {
					longer = append(longer, append(slices.Clone(t), v))
				}
			}
			trials = longer
		}
		return trials, nil
	}
	size := 1.0
	for _, p := range space {
		size *= p.size()
	}
	if size < float64(m.trials) {
		return nil, fmt.Errorf("got Trials %d: the space has only %g different trials: draw fewer, or use Grid", m.trials, size)
	}
	drawn := map[string]bool{}
	taken := func(values []any) bool { return drawn[keyOf(values)] }
	for i := range m.trials {
		if m.bayesian && i >= startTrials {
			trials = append(trials, nil)
			continue
		}
		values := drawDistinct(space, generator(seed, i), taken)
		if values == nil {
			return nil, fmt.Errorf("got Trials %d: found no trial that differs from the first %d: draw fewer", m.trials, i)
		}
		drawn[keyOf(values)] = true
		trials = append(trials, values)
	}
	return trials, nil
}

func keyOf(values []any) string { return fmt.Sprintf("%#v", values) }

// drawDistinct returns nil if it finds no untaken trial: ranges of real numbers may be nearly points.
func drawDistinct(space []Parameter, random *rand.Rand, taken func([]any) bool) []any {
	for range 1_000_000 {
		var values []any
		for _, p := range space {
			values = append(values, p.draw(random))
		}
		if !taken(values) {
			return values
		}
	}
	return nil
}

// Parameters are one trial's values. A name that the Space lacks, or another type, ends the search with an error.
type Parameters struct {
	Number int
	values map[string]any
	read   map[string]bool
	err    error
}

// Text returns a parameter whose Values are strings.
func (p *Parameters) Text(name string) string { return valueOf[string](p, name) }

// Int returns a parameter that is Integer, or whose Values are ints.
func (p *Parameters) Int(name string) int { return valueOf[int](p, name) }

// Float returns a parameter of a range that is not Integer, or whose Values are float64s.
func (p *Parameters) Float(name string) float64 { return valueOf[float64](p, name) }

// Bool returns a parameter whose Values are bools.
func (p *Parameters) Bool(name string) bool { return valueOf[bool](p, name) }

func valueOf[T any](p *Parameters, name string) (v T) {
	_, err := names.Find("parameter", name, p.values)
	if err == nil {
		p.read[name] = true
		var ok bool
		if v, ok = p.values[name].(T); !ok {
			err = fmt.Errorf("the parameter %q is a %T, but Make reads it as a %T", name, p.values[name], v)
		}
	}
	p.err = errors.Join(p.err, err)
	return v
}
