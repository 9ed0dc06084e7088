package flaxlike

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/names"
)

// Parameter is one of what a [Search] chooses: [Choice], [IntRange], [RealRange] or [LogRange].
type Parameter struct {
	name      string
	choices   []any   // texts, integers, real numbers or truth values; nil of a range
	low, high float64 // of a range, both in it
	whole     bool
	log       bool
}

// Choice is one of the values.
func Choice[T string | int | float64 | bool](name string, values ...T) Parameter {
	p := Parameter{name: name, choices: []any{}}
	for _, v := range values {
		p.choices = append(p.choices, v)
	}
	return p
}

// IntRange is an integer from low to high, both in it.
func IntRange(name string, low, high int) Parameter {
	return Parameter{name: name, low: float64(low), high: float64(high), whole: true}
}

// RealRange is a number from low to high, all as likely.
func RealRange(name string, low, high float64) Parameter {
	return Parameter{name: name, low: low, high: high}
}

// LogRange is a number from low, which is above 0, to high, whose logarithms are as likely: for learning rates.
func LogRange(name string, low, high float64) Parameter {
	return Parameter{name: name, low: low, high: high, log: true}
}

// String is as the functions are written.
func (p Parameter) String() string {
	if p.choices != nil {
		var values []string
		for _, v := range p.choices {
			values = append(values, fmt.Sprintf("%#v", v))
		}
		return fmt.Sprintf("Choice(%q, %s)", p.name, strings.Join(values, ", "))
	}
	kind := "RealRange"
	switch {
	case p.whole:
		kind = "IntRange"
	case p.log:
		kind = "LogRange"
	}
	return fmt.Sprintf("%s(%q, %s, %s)", kind, p.name, inGo(p.low), inGo(p.high))
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
		switch {
		case p.name == "":
			return fmt.Errorf("parameter %d has no name", i+1)
		case slices.ContainsFunc(space[:i], func(q Parameter) bool { return q.name == p.name }):
			return fmt.Errorf("the parameter %q is there twice", p.name)
		case p.choices != nil && len(p.choices) == 0:
			return fmt.Errorf("%v: expected one value at least", p)
		case p.choices != nil:
			for k, v := range p.choices {
				if f, real := v.(float64); real && (math.IsNaN(f) || math.IsInf(f, 0)) || slices.Contains(p.choices[:k], v) {
					return fmt.Errorf("%v: expected finite values, each once", p)
				}
			}
		case !(p.low <= p.high) || math.IsInf(p.low, 0) || math.IsInf(p.high, 0) || math.IsInf(p.high-p.low, 0):
			return fmt.Errorf("%v: expected finite ends, the first one not above the second", p)
		case p.log && !(p.low > 0):
			return fmt.Errorf("%v: expected ends above 0, which have a logarithm", p)
		case p.whole && (p.low < -1<<53 || p.high > 1<<53):
			return fmt.Errorf("%v: expected integers of at most 2^53", p)
		}
	}
	return nil
}

// between is the value at a share of the way from low to high.
func (p Parameter) between(share float64) float64 {
	switch {
	case share <= 0:
		return p.low
	case share >= 1:
		return p.high
	case p.log:
		return min(p.high, max(p.low, math.Exp(math.Log(p.low)+share*(math.Log(p.high)-math.Log(p.low)))))
	}
	return min(p.high, max(p.low, p.low+share*(p.high-p.low)))
}

// grid are so many values of a range at most, its ends among them, or all choices.
func (p Parameter) grid(points int) (values []any) {
	switch {
	case p.choices != nil:
		return p.choices
	case p.low == p.high:
		points = 1
	case p.whole && p.high-p.low < float64(points):
		points = int(p.high-p.low) + 1
	}
	for i := range points {
		v := p.between(float64(i) / float64(max(1, points-1)))
		if p.whole {
			values = append(values, int(math.Round(v)))
		} else {
			values = append(values, v)
		}
	}
	return values
}

func (p Parameter) draw(random *rand.Rand) any {
	switch {
	case p.choices != nil:
		return p.choices[random.IntN(len(p.choices))]
	case p.whole:
		return int(p.low) + int(random.Int64N(int64(p.high-p.low)+1))
	}
	return p.between(random.Float64())
}

// size is how many values there are; +Inf of real numbers.
func (p Parameter) size() float64 {
	switch {
	case p.choices != nil:
		return float64(len(p.choices))
	case p.whole:
		return p.high - p.low + 1
	case p.low == p.high:
		return 1
	}
	return math.Inf(1)
}

// Method is how a [Search] chooses its trials: [GridSearch], [RandomSearch] or [SuccessiveHalving].
type Method struct {
	kind                           string
	points, trials, epochs, factor int
}

// GridSearch tries all products of the parameters' values: of a range so many points, evenly from end to end, or its
// integers if these are not more.
func GridSearch(points int) Method { return Method{kind: "grid", points: points} }

// RandomSearch tries so many trials, no two the same, drawn by the search's seed.
func RandomSearch(trials int) Method { return Method{kind: "random", trials: trials} }

// SuccessiveHalving begins with so many random trials (Jamieson and Talwalkar, 2016): each is trained for the first
// epochs; then the best trials/factor of them, rounded down, go on to factor times as many epochs, and so on until it
// would be none. A trial that goes on is the same model, with the same optimizer and order of examples as if it had
// never stopped. Of trials that are as good the one drawn first goes on.
func SuccessiveHalving(trials, epochs, factor int) Method {
	return Method{"halving", 0, trials, epochs, factor}
}

// String is as the functions are written.
func (m Method) String() string {
	switch m.kind {
	case "grid":
		return fmt.Sprintf("GridSearch(%d)", m.points)
	case "random":
		return fmt.Sprintf("RandomSearch(%d)", m.trials)
	case "halving":
		return fmt.Sprintf("SuccessiveHalving(%d, %d, %d)", m.trials, m.epochs, m.factor)
	}
	return "none"
}

// mostTrials is far above what a search can make, and below what fills a memory.
const mostTrials = 1_000_000

func (m Method) check() error {
	switch {
	case m.kind == "":
		return errors.New("there is no Method: expected GridSearch, RandomSearch or SuccessiveHalving")
	case m.kind == "grid" && m.points < 2:
		return fmt.Errorf("%v: expected two points of a range at least, its ends", m)
	case m.kind != "grid" && (m.trials < 1 || m.trials > mostTrials):
		return fmt.Errorf("%v: expected 1 to %d trials", m, mostTrials)
	case m.kind == "halving" && (m.epochs < 1 || m.factor < 2):
		return fmt.Errorf("%v: expected one epoch at least, and a factor of 2 at least", m)
	}
	for _, r := range m.rungs(m.trials) {
		if r.epochs > math.MaxInt32 {
			return fmt.Errorf("%v: the last trials would have %d epochs", m, r.epochs)
		}
	}
	return nil
}

// rung is how many trials are trained until which epoch; 0 stands for what the Fit says.
type rung struct{ trials, epochs int }

// rungs are those of so many trials.
func (m Method) rungs(trials int) (all []rung) {
	if m.kind != "halving" {
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

// trials are the values of all trials, in the order of the space.
func (m Method) valuesOf(space []Parameter, seed uint64) (trials [][]any, err error) {
	if m.kind == "grid" {
		trials = [][]any{nil}
		for _, p := range space {
			values, longer := p.grid(m.points), [][]any(nil)
			if len(trials)*len(values) > mostTrials {
				return nil, fmt.Errorf("%v: the grid has more than %d trials", m, mostTrials)
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
		return nil, fmt.Errorf("%v: the space has %g trials that differ: take fewer, or GridSearch", m, size)
	}
	drawn := map[string]bool{}
	for i := range m.trials {
		var of [32]byte
		binary.LittleEndian.PutUint64(of[:], seed)
		binary.LittleEndian.PutUint64(of[8:], uint64(i))
		random := rand.New(rand.NewChaCha8(of))
		for tries := 0; ; tries++ {
			var values []any
			for _, p := range space {
				values = append(values, p.draw(random))
			}
			if key := fmt.Sprintf("%#v", values); !drawn[key] {
				drawn[key] = true
				trials = append(trials, values)
				break
			}
			if tries == 1_000_000 { // ranges of real numbers that are all but points
				return nil, fmt.Errorf("%v: no further trial was found that differs from the %d before: take fewer", m, i)
			}
		}
	}
	return trials, nil
}

// Parameters are those of one trial. A name that the search's Space has not, or another type than the parameter's, is
// an error of the search, whatever is made of the zero that is given.
type Parameters struct {
	// Number is the trial's, from 0 on.
	Number int
	values map[string]any
	read   map[string]bool
	err    error
}

// Text is the value of a [Choice] of texts.
func (p *Parameters) Text(name string) string { return valueOf[string](p, name) }

// Int is the value of an [IntRange], or of a [Choice] of integers.
func (p *Parameters) Int(name string) int { return valueOf[int](p, name) }

// Float is the value of a [RealRange] or a [LogRange], or of a [Choice] of real numbers.
func (p *Parameters) Float(name string) float64 { return valueOf[float64](p, name) }

// Bool is the value of a [Choice] of truth values.
func (p *Parameters) Bool(name string) bool { return valueOf[bool](p, name) }

func valueOf[T any](p *Parameters, name string) (v T) {
	_, err := names.Find("parameter", name, p.values)
	if err == nil {
		p.read[name] = true
		var ok bool
		if v, ok = p.values[name].(T); !ok {
			err = fmt.Errorf("the parameter %q is a %T, and is asked for as a %T", name, p.values[name], v)
		}
	}
	p.err = errors.Join(p.err, err)
	return v
}
