//go:build unix

package callbacks_test

import (
	"context"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// BenchmarkBarTurn measures the cost of a bar: one iteration is 20,000 steps of about 10 µs of work that log three
// numbers, once without a bar and once with one that draws 20 lines a second, without a terminal. Times are those of
// the processor, so that other programs do not count; ratio and ns/turn are the medians of all iterations.
func BenchmarkBarTurn(b *testing.B) {
	const steps = 20_000
	work := worker(10 * time.Microsecond)
	step := func(ctx context.Context, s, n int) (int, loop.Logs, error) {
		work()
		return threeLogs(ctx, s, n)
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)))
	run := func(options ...loop.Option) time.Duration {
		start := processorTime(b)
		_, err := l.Run(context.Background(), 0, loop.Data[int](forever), append(options, loop.Until(loop.Steps(steps)), loop.Keep(loop.Never))...)
		if err != nil {
			b.Fatal(err)
		}
		return processorTime(b) - start
	}
	bar := callbacks.ProgressBar(io.Discard, callbacks.Terminal(func() int { return 120 }))
	var ratios, costs, bare []float64
	for b.Loop() {
		without, with := run(), run(bar)
		ratios = append(ratios, float64(with)/float64(without))
		costs = append(costs, float64(with-without)/steps)
		bare = append(bare, float64(without)/steps)
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(costs), "bar-ns/turn")
	b.ReportMetric(median(bare), "bare-ns/turn")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

var sink float64

// worker is a piece of work of about that length, the same each time.
func worker(length time.Duration) func() {
	piece := func(n int) {
		x := 1.5
		for range n {
			x = x*0.999 + 0.001
		}
		sink = x
	}
	const trial = 10_000
	best := time.Hour
	for range 100 {
		start := time.Now()
		piece(trial)
		best = min(best, time.Since(start))
	}
	n := int(trial * length / best)
	return func() { piece(n) }
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
