package loop_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// traced is a program of the model with further parts.
type traced struct {
	program              // its watchers are among those that follow
	attached  []attached // in the order of the options
	thin      bool       // of no effect since there is one bound of the history: it keeps the draws of later fields
	monitored bool       // there is a MonitorsWhen
	monitors  loop.Schedule
	cut       int  // the run ends there and is resumed; not where -1
	ended     bool // the resumed one receives the Stop of the first
	asksAt    int  // an interrupter asks for a call after the step of that batch
	ranks     int  // of a job; none where 0
	culprit   int  // the rank in which faults of a part occur; -1: all
	seed      uint64
	// single: no task is given several batches at once, so that the data and the batches in hand are traced too.
	single bool
}

// attached is a watcher, or a change.
type attached struct {
	part
	changes, rank0, monitor bool
	observes                bool // it is an Observer and an Interrupter
	place                   int  // 1: before all others, 2: after them
	needs                   []string
}

// drawnTraced is the program of a seed. Each has one, whatever the flags of rapid.
func drawnTraced(kind string, seed int) traced {
	programs := rapid.Custom(func(t *rapid.T) traced { return drawTraced(t, kind) })
	for ; ; seed += 1_000_000_000 {
		if p := programs.Example(seed); kind != "blocks" || p.hasBlocks() {
			return p
		}
	}
}

func (p traced) hasBlocks() bool {
	return slices.ContainsFunc(p.tasks, func(x part) bool { return x.block > 1 })
}

// text describes a program, to distinguish different programs from different loops.
func (p traced) text() string {
	var text strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	say("sizes %v, fault %q at %d, until %q, keep %s, limit %d, thin %t", p.sizes, p.fault, p.faultAt, untilText(p.until), p.keep, p.limit, p.thin)
	say("monitors %t %s, cut %d, ended %t, asks at %d, ranks %d, culprit %d, seed %d, single %t", p.monitored, p.monitors, p.cut, p.ended, p.asksAt, p.ranks, p.culprit, p.seed, p.single)
	partText := func(x *part) string {
		return fmt.Sprintf("%s: %q, logs %q, turn %t, block %d, takes %s, entry %q, does %q at %d", x.name, x.when, x.logs, x.turn, x.block, x.takes, x.entry, x.does, x.at)
	}
	for i := range p.tasks {
		say("%s", partText(&p.tasks[i]))
	}
	for i := range p.attached {
		a := &p.attached[i]
		say("%s, changes %t, place %d, rank 0 %t, monitor %t, observes %t, needs %q", partText(&a.part), a.changes, a.place, a.rank0, a.monitor, a.observes, a.needs)
	}
	return text.String()
}

// drawTraced draws a program of the model's, with features that the model lacks.
func drawTraced(t *rapid.T, kind string) traced {
	p := traced{program: drawProgram(t), cut: -1, culprit: -1, asksAt: -1}
	n := len(p.sizes)
	places := []int{evenly(t, n, "place"), evenly(t, n, "other place")}
	entry := func(label string) string { // mostly one that is logged, or the run ends early
		names := []string{"a", "b", "c", "d"}
		for _, x := range p.tasks {
			if len(x.logs) > 0 && !oneIn(t, 8, "any name") {
				names = x.logs
			}
		}
		return pick(t, names, label)
	}
	for i := range p.tasks {
		if x := &p.tasks[i]; x.does == "" && oneIn(t, 12, "await") {
			x.does = "await"
		}
	}
	for _, w := range p.watchers {
		if w.entry != "" && oneIn(t, 2, "other entry") {
			w.entry = entry("entry")
		}
		p.attached = append(p.attached, attached{part: w, rank0: oneIn(t, 4, "rank 0")})
	}
	for i := range evenly(t, 2, "changes") {
		x := attached{part: part{name: fmt.Sprint("change", i)}, changes: true}
		if oneIn(t, 4, "of an entry") {
			x.when, x.entry = loop.EachStep.AndAtStart().AndAtEnd(), entry("entry")
		} else {
			x.when = p.drawDue(t)
		}
		if oneIn(t, 8, "needs") {
			x.needs = []string{entry("needs")}
		}
		x.drawDoes(t, []string{"error", "stop", "stop", "panic", "cancel", "end"}, places)
		p.attached = slices.Insert(p.attached, evenly(t, len(p.attached), "position"), x)
	}
	for i := range p.attached {
		x := &p.attached[i]
		x.place = pick(t, []int{0, 0, 1, 2}, "where")
		x.monitor = x.entry != "" && oneIn(t, 2, "monitor")
		if x.does == "" && oneIn(t, 15, "starts") {
			x.does = pick(t, []string{"start error", "start stop", "start stop", "start panic", "start cancel"}, "starts with")
		}
	}
	p.thin = oneIn(t, 2, "thin")
	if oneIn(t, 3, "monitors") {
		p.monitored, p.monitors = true, loop.Every(loop.Steps(1+evenly(t, 9, "monitors")))
	}
	if oneIn(t, 3, "cut") {
		p.cut, p.ended = evenly(t, n, "cut at"), oneIn(t, 2, "ended")
	}
	switch kind {
	case "observed":
		p.asksAt = pick(t, places, "asks at")
		for i := range p.attached {
			x := &p.attached[i]
			if x.observes = !x.changes && !oneIn(t, 3, "observes not"); x.observes && x.entry == "" && oneIn(t, 3, "asks alone") {
				x.when = loop.Schedule{}
			}
		}
	case "ranks":
		p.ranks, p.seed = 2+evenly(t, 2, "ranks"), uint64(evenly(t, 1000, "seed"))
		if oneIn(t, 2, "culprit") {
			p.culprit = evenly(t, p.ranks-1, "culprit")
			if oneIn(t, 4, "own fault") && n > 0 {
				p.fault, p.faultAt = pick(t, []string{"ends", "larger", "cancel", "error", "hang"}, "own fault"), evenly(t, n-1, "own fault at")
			}
		}
	}
	// The processes meet where the blocks end, and there they see the faults and contexts of single processes.
	if p.single = kind != "blocks" && (kind != "ranks" || p.culprit >= 0 || p.cancelsAny() || !p.hasBlocks()); p.single {
		p.program = p.withoutBlocks()
	}
	return p
}

func (p traced) cancelsAny() bool {
	return p.cancels() || slices.ContainsFunc(p.attached, func(a attached) bool { return strings.HasSuffix(a.does, "cancel") })
}
