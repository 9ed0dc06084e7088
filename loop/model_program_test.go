package loop_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// program describes a loop with its data and options, for Run and for the reference.
type program struct {
	tasks, watchers []part
	sizes           []int  // of the batches
	fault           string // of the data: "error", "panic", "cancel", "hang" or "negative", when batch faultAt is asked for
	faultAt         int
	until           loop.Period
	keep            loop.Schedule
	limit           int // of the history; none where 0
}

// part is a task or a watcher.
type part struct {
	name  string
	when  loop.Schedule
	logs  []string      // the metrics that a task logs
	turn  bool          // the task is one of OnTurn
	block int           // the task is a BlockStepper with that BlockSize; none where 0
	takes time.Duration // of one step
	entry string        // the watcher is one of an entry
	// does is the fault, "error", "stop", "cancel" or "panic", at the batch with the number at, or for a watcher after
	// at steps; or "end": the End of the watcher fails.
	does string
	at   int
}

func (p *part) label() string {
	if p.entry != "" {
		return "on each " + p.entry + ": " + p.name
	}
	return p.when.String() + ": " + p.name
}

type batch struct{ index, size int }

func (b batch) Samples() int { return b.size }

type logged struct {
	name  string
	value float64
}

// computed is the arithmetic of a task: each state depends on all earlier work and its order.
func (p *part) computed(state uint64, b batch, seen []logged) (uint64, []logged) {
	state = state*31 + uint64(b.index)*7 + uint64(p.name[len(p.name)-1])
	for _, l := range seen {
		state = state*31 + uint64(l.value)
	}
	var logs []logged
	for i, name := range p.logs {
		logs = append(logs, logged{name, float64((state + uint64(i)) % 997)})
	}
	return state, logs
}

func drawProgram(t *rapid.T) program {
	n := evenly(t, 60, "batches")
	p := program{keep: loop.EachStep, sizes: rapid.SliceOfN(rapid.IntRange(0, 4), n, n).Draw(t, "sizes")}
	switch pick(t, []string{"data", "data", "steps", "samples"}, "until") {
	case "steps":
		p.until = loop.Steps(evenly(t, n+1, "until"))
	case "samples":
		p.until = loop.Samples(evenly(t, 2*n+1, "until"))
	}
	// Things happen in a few places only, so that often several do in one turn.
	places := []int{evenly(t, n, "place"), evenly(t, n, "other place")}
	if oneIn(t, 5, "fault") {
		p.fault, p.faultAt = pick(t, []string{"error", "panic", "cancel", "hang", "negative"}, "fault"), pick(t, places, "fault at")
		if p.fault == "negative" && p.faultAt == n {
			p.fault = ""
		}
	}
	if oneIn(t, 4, "keep") {
		p.keep = drawWhen(t, 1)
	}
	if oneIn(t, 4, "limit") {
		p.limit = 1 + evenly(t, 19, "limit")
	}
	names, each := []string{"a", "b", "c", "d"}, false
	for i := range 1 + evenly(t, 3, "tasks") {
		x := part{name: fmt.Sprint("task", i), logs: rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, "logs")}
		kinds := []string{"error", "stop", "stop", "panic", "cancel"}
		switch pick(t, []string{"step", "turn", "block", "block"}, "kind") {
		case "turn":
			x.turn = true
		case "block":
			x.block = 1 + evenly(t, 19, "block")
			// A panic loses the state within a block, and a cancelled block is finished.
			kinds = kinds[:3]
		}
		// Usually one of the block steppers is due in each step, and the other tasks are rarely due.
		if x.when = p.drawDue(t); x.block > 1 && !each && !oneIn(t, 4, "sometimes") {
			x.when, each = loop.EachStep, true
		}
		if oneIn(t, 4, "slow") {
			x.takes = pick(t, []time.Duration{time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond}, "takes")
		}
		x.drawDoes(t, kinds, places)
		p.tasks = append(p.tasks, x)
	}
	for i := range evenly(t, 3, "watchers") {
		x := part{name: fmt.Sprint("watcher", i)}
		if oneIn(t, 4, "of an entry") {
			x.when, x.entry = loop.EachStep.AndAtStart().AndAtEnd(), pick(t, names, "entry")
		} else {
			x.when = p.drawDue(t)
		}
		x.drawDoes(t, []string{"error", "stop", "stop", "panic", "cancel", "end", "end", "end"}, places)
		p.watchers = append(p.watchers, x)
	}
	return p
}

func (p *part) drawDoes(t *rapid.T, kinds []string, places []int) {
	if oneIn(t, 6, "does") {
		p.does, p.at = pick(t, kinds, "does"), pick(t, places, "at")
	}
}

// drawDue draws a schedule that Run does not refuse: it is due somewhere.
func (p *program) drawDue(t *rapid.T) loop.Schedule {
	var s loop.Schedule
	if oneIn(t, 3, "any schedule") {
		s = drawWhen(t, 2)
	} else {
		s = loop.Every(loop.Steps(3 + evenly(t, 27, "n")))
	}
	if p.until != nil && s.IsNever(p.until) {
		s = s.Or(loop.At(loop.Steps(1)))
	}
	if oneIn(t, 10, "at start") {
		s = s.AndAtStart()
	}
	if oneIn(t, 10, "at end") {
		s = s.AndAtEnd()
	}
	return s
}

// drawWhen draws a schedule of steps and samples.
func drawWhen(t *rapid.T, depth int) loop.Schedule {
	kinds := []string{"every", "every", "at", "times", "exponential", "after", "odd", "never", "any", "all", "not", "then", "phases"}
	if depth == 0 {
		kinds = kinds[:8]
	}
	period := func() loop.Period {
		n := int64(1 + evenly(t, 29, "n"))
		if oneIn(t, 3, "unit") {
			return loop.Samples(2 * n)
		}
		return loop.Steps(n)
	}
	part := func() loop.Schedule { return drawWhen(t, depth-1) }
	switch pick(t, kinds, "when") {
	case "at":
		return loop.At(period())
	case "times":
		return loop.At(period())
	case "exponential":
		p := period()
		unit := steps
		if _, is := p.(loop.Samples); is {
			unit = samples
		}
		return exponential(p.Length(), 1.5, unit)
	case "after":
		return loop.After(period())
	case "odd":
		return loop.When("odd", func(before, after loop.Elapsed) bool { return before.Samples%7 == 3 || after.Steps%11 == 5 })
	case "never":
		return loop.Never
	case "any":
		return part().Or(part())
	case "all":
		return part().And(part())
	case "not":
		return part().Not()
	case "then":
		return loop.Never.Then(period(), part())
	case "phases":
		n := int64(1 + evenly(t, 19, "from"))
		return part().Or().Then(loop.Steps(n), part()).Then(loop.Steps(n+10), part())
	default:
		return loop.Every(period())
	}
}

// evenly draws one of 0 to n, all as likely; the numbers that rapid draws by itself are mostly small.
func evenly(t *rapid.T, n int, label string) int {
	x := 0
	for _, bit := range rapid.SliceOfN(rapid.Bool(), 10, 10).Draw(t, label) {
		x *= 2
		if bit {
			x++
		}
	}
	return x * (n + 1) >> 10
}

// oneIn is true once in n times.
func oneIn(t *rapid.T, n int, label string) bool { return evenly(t, n-1, label) == n-1 }

func pick[T any](t *rapid.T, from []T, label string) T { return from[evenly(t, len(from)-1, label)] }
