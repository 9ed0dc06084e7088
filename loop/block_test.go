package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// TestModel checks that blocks and single steps have equal results. These tests check the places where this could fail.

// adder adds up, as a block stepper.
type adder struct {
	size  int
	log   string                // the metric that it logs, none where ""
	takes time.Duration         // of a step
	comes func(batch int) error // the fault of a batch
	sizes *[]int                // of the blocks that it was given
}

func (a adder) BlockSize() int { return a.size }

func (a adder) Step(_ context.Context, sum, batch int) (int, loop.Logs, error) {
	time.Sleep(a.takes)
	var logs loop.Logs
	var err error
	if a.comes != nil {
		err = a.comes(batch)
	}
	sum += batch
	if a.log != "" {
		logs.Metric(a.log, float64(sum))
	}
	return sum, logs, err
}

func (a adder) StepBlock(ctx context.Context, sum int, batches []int) (int, []loop.Logs, error) {
	if a.sizes != nil {
		*a.sizes = append(*a.sizes, len(batches))
	}
	var all []loop.Logs
	for _, batch := range batches {
		next, logs, err := a.Step(ctx, sum, batch)
		if err != nil && !errors.Is(err, loop.ErrStop) {
			return sum, all, err
		}
		sum, all = next, append(all, logs)
		if err != nil {
			return sum, all, err
		}
	}
	return sum, all, nil
}

// alone is an adder that is no block stepper.
func (a adder) alone() loop.Stepper[int, int] { return loop.StepFunc[int, int](a.Step) }

// ExampleStepper makes the steps between two evaluations at once.
func ExampleStepper() {
	var sizes []int
	training := loop.New(
		loop.On[int, int](loop.EachStep, adder{size: 16, sizes: &sizes}),
		loop.On(loop.Every(loop.Steps(10)), loop.StepFunc(func(_ context.Context, sum, _ int) (int, loop.Logs, error) {
			fmt.Println("the sum is", sum)
			return sum, loop.Logs{}, nil
		})),
	)
	if _, err := training.Run(context.Background(), 0, numbers(30)); err != nil {
		fmt.Println(err)
	}
	fmt.Println("first blocks:", sizes[:3])
	// Output:
	// the sum is 45
	// the sum is 190
	// the sum is 435
	// first blocks: [1 2 4]
}

func quiet(context.Context, loop.Report) error { return nil }

func TestBlocks_sizes(t *testing.T) {
	ten := loop.Every(loop.Steps(10))
	idle := func(when loop.Schedule) loop.Task[int, int] {
		return loop.On(when, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, nil }))
	}
	watch := func(when loop.Schedule) []loop.Option { return []loop.Option{loop.Watch(when, quiet)} }
	entry := func(name string) []loop.Option { return []loop.Option{loop.WatchEntry(name, quiet)} }
	fiveFirst := loop.Elapsed{Steps: 5, Samples: 5}
	for _, row := range []struct {
		name         string
		adder        adder
		when         loop.Schedule // each step if it is the zero Schedule
		front, after []loop.Task[int, int]
		options      []loop.Option
		steps        int
		want         []int
	}{
		{name: "nothing is due: they double up to the size", adder: adder{size: 12}, steps: 40, want: []int{1, 2, 4, 8, 12, 12, 1}},
		{name: "size 3", adder: adder{size: 3}, steps: 10, want: []int{1, 2, 3, 3, 1}},
		{name: "a size beyond all memory", adder: adder{size: 1 << 40}, steps: 20, want: []int{1, 2, 4, 8, 5}},
		{name: "size 1 is no block stepper", adder: adder{size: 1}, steps: 20},
		{name: "size 0 is none either", adder: adder{size: 0}, steps: 20},
		{name: "a watcher", adder: adder{size: 8}, options: watch(ten), steps: 30, want: []int{1, 2, 4, 3, 8, 2, 8, 2}},
		{name: "a watcher of each step", adder: adder{size: 8}, options: watch(loop.EachStep), steps: 5, want: []int{1, 1, 1, 1, 1}},
		{name: "a watcher at one point", adder: adder{size: 8}, options: watch(loop.At(loop.Steps(9))), steps: 20, want: []int{1, 2, 4, 2, 8, 3}},
		{name: "a watcher of samples", adder: adder{size: 8}, options: watch(loop.Every(loop.Samples(10))), steps: 20, want: []int{1, 2, 4, 3, 8, 2}},
		{name: "a watcher of phases", adder: adder{size: 8}, options: watch(ten.Then(loop.Steps(12), loop.Every(loop.Steps(5)))),
			steps: 22, want: []int{1, 2, 4, 3, 7, 5}},
		{name: "a watcher of a function", adder: adder{size: 8}, steps: 14, want: []int{1, 2, 4, 6, 1},
			options: watch(loop.When("thirteen", func(_, after loop.Elapsed) bool { return after.Steps == 13 }))},
		{name: "both ends are no turns", adder: adder{size: 8}, options: watch(loop.AtStart.AndAtEnd()), steps: 10, want: []int{1, 2, 4, 3}},
		{name: "until steps", adder: adder{size: 64}, options: []loop.Option{loop.Until(loop.Steps(20))}, steps: 99, want: []int{1, 2, 4, 8, 5}},
		{name: "until samples", adder: adder{size: 64}, options: []loop.Option{loop.Until(loop.Samples(20))}, steps: 99, want: []int{1, 2, 4, 8, 5}},
		{name: "what is kept has no say", adder: adder{size: 8, log: "sum"}, options: []loop.Option{loop.Keep(ten)}, steps: 15, want: []int{1, 2, 4, 8}},
		{name: "resumed", adder: adder{size: 8}, options: append(watch(ten), loop.Continue(fiveFirst, nil)), steps: 10, want: []int{1, 2, 2, 5}},
		{name: "an entry of its own", adder: adder{size: 8, log: "sum"}, options: entry("sum"), steps: 4, want: []int{1, 1, 1, 1}},
		{name: "an entry of a task behind", adder: adder{size: 8}, after: []loop.Task[int, int]{loop.On(ten, loop.StepFunc(evaluation))}, options: entry("evaluated"),
			steps: 20, want: []int{1, 2, 4, 3, 8, 2}},
		{name: "an entry of a task in front", adder: adder{size: 8}, front: []loop.Task[int, int]{loop.On(ten, loop.StepFunc(evaluation))}, options: entry("evaluated"),
			steps: 20, want: []int{1, 2, 4, 2, 1, 8, 1, 1}},
		{name: "a task behind", adder: adder{size: 8}, after: []loop.Task[int, int]{idle(ten)}, steps: 20, want: []int{1, 2, 4, 3, 8, 2}},
		{name: "a task in front", adder: adder{size: 8}, front: []loop.Task[int, int]{idle(ten)}, steps: 20, want: []int{1, 2, 4, 2, 8, 2, 1}},
		{name: "tasks on both sides", adder: adder{size: 8}, front: []loop.Task[int, int]{idle(ten)}, after: []loop.Task[int, int]{idle(loop.At(loop.Steps(14)))},
			steps: 20, want: []int{1, 2, 4, 2, 5, 5, 1}},
		{name: "turns without a step", adder: adder{size: 8}, when: loop.Every(loop.Steps(5)).Not(), steps: 20, want: []int{1, 2, 1, 4, 4, 4}},
		{name: "another in the same turns", adder: adder{size: 8}, after: []loop.Task[int, int]{loop.On[int, int](ten, adder{size: 8})},
			steps: 20, want: []int{1, 2, 4, 2, 1, 8, 1, 1}},
		{name: "another behind it in the run", adder: adder{size: 8}, when: loop.After(loop.Steps(10)).Not(),
			after: []loop.Task[int, int]{loop.On[int, int](loop.After(loop.Steps(10)), adder{size: 8})}, steps: 20, want: []int{1, 2, 4, 2}},
		{name: "at the start and the end too", adder: adder{size: 8}, when: loop.EachStep.AndAtStart().AndAtEnd(), steps: 7, want: []int{1, 1, 2, 4, 1}},
		{name: "steps of 20 ms: 2 in 50 ms", adder: adder{size: 8, takes: 20 * time.Millisecond}, steps: 7, want: []int{1, 2, 2, 2}},
		{name: "steps of 60 ms", adder: adder{size: 8, takes: 60 * time.Millisecond}, steps: 4, want: []int{1, 1, 1, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sizes []int
				row.adder.sizes = &sizes
				if row.when.String() == loop.Never.String() {
					row.when = loop.EachStep
				}
				tasks := slices.Concat(row.front, []loop.Task[int, int]{loop.On[int, int](row.when, row.adder)}, row.after)
				_, err := loop.New(tasks...).Run(t.Context(), 0, rest(numbers(row.steps)), row.options...)
				require.NoError(t, err)
				require.Equal(t, row.want, sizes)
			})
		})
	}
}

// How many calls a thousand steps need.
func TestBlocks_calls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		result, err := loop.New(loop.On[int, int](loop.EachStep, adder{size: 100, log: "sum", sizes: &sizes})).Run(t.Context(), 0, numbers(1000))
		require.NoError(t, err)
		require.Equal(t, 999*1000/2, result.State)
		require.Equal(t, 1000, result.History.Len())
		require.Len(t, sizes, 16)
		t.Logf("1000 steps of BlockSize 100: %d calls", len(sizes))
	})
}

// A step that becomes slow in the middle of a run makes the blocks short again.
func TestBlocks_sizesFollowTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		slow := adder{size: 64, sizes: &sizes, comes: func(batch int) error {
			if batch >= 31 {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}}
		_, err := loop.New(loop.On[int, int](loop.EachStep, slow)).Run(t.Context(), 0, numbers(31+32+10))
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 4, 8, 16, 32, 5, 5}, sizes)
	})
}

// Schedules of time are looked at between blocks, and blocks are short: a watcher comes no more than 50 ms late.
func TestBlocks_time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		var sizes []int
		var front int
		l := loop.New(
			loop.On(loop.Every(loop.Time(100*time.Millisecond)), loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { front++; return s, loop.Logs{}, nil })),
			loop.On[int, int](loop.EachStep, adder{size: 1000, log: "sum", takes: time.Millisecond, sizes: &sizes}))
		result, err := l.Run(t.Context(), 0, numbers(1<<20), loop.Until(loop.Time(2*time.Second)),
			loop.Watch(loop.Every(loop.Time(100*time.Millisecond)), func(_ context.Context, r loop.Report) error {
				at = append(at, r.Elapsed.Time)
				return nil
			}))
		require.NoError(t, err)
		require.Equal(t, loop.UntilReached, result.Reason)
		require.LessOrEqual(t, result.Elapsed.Time, 2050*time.Millisecond)
		require.Equal(t, 50, slices.Max(sizes))
		require.Len(t, at, 20)
		require.InDelta(t, 20, front, 1)
		worst := time.Duration(0)
		for i, when := range at {
			due := time.Duration(i+1) * 100 * time.Millisecond
			require.GreaterOrEqual(t, when, due)
			worst = max(worst, when-due)
		}
		require.LessOrEqual(t, worst, 50*time.Millisecond)
		t.Logf("watchers of time came up to %s late", worst)
		last := loop.Elapsed{}
		for e := range result.History.Rows() { // steps within a block share its time
			require.Equal(t, last.Steps+1, e.Steps)
			require.GreaterOrEqual(t, e.Time, last.Time)
			require.InDelta(t, float64(time.Duration(e.Steps)*time.Millisecond), float64(e.Time), float64(2*time.Millisecond))
			last = e
		}
		require.Equal(t, result.Elapsed.Steps, last.Steps)
	})
}

// If the source is slow, a block ends with the first batch that arrives 50 ms after its own first one, so schedules of
// time do not wait longer.
func TestBlocks_slowSource(t *testing.T) {
	for _, row := range []struct{ wait, worst time.Duration }{
		{time.Millisecond, 50 * time.Millisecond}, {20 * time.Millisecond, 60 * time.Millisecond}, {80 * time.Millisecond, 160 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sizes []int
			var at []time.Duration
			slow := func(yield func(int, error) bool) {
				for i := range 1000 {
					if time.Sleep(row.wait); !yield(i, nil) {
						return
					}
				}
			}
			result, err := loop.New(loop.On[int, int](loop.EachStep, adder{size: 1000, log: "sum", sizes: &sizes})).Run(t.Context(), 0, loop.Data[int](slow),
				loop.Watch(loop.Every(loop.Time(400*time.Millisecond)), func(_ context.Context, r loop.Report) error {
					at = append(at, r.Elapsed.Time)
					return nil
				}))
			require.NoError(t, err)
			require.Equal(t, 999*1000/2, result.State, "each batch has its step")
			require.LessOrEqual(t, slices.Max(sizes), 1+int((50*time.Millisecond+row.wait-1)/row.wait))
			require.Len(t, at, int(1000*row.wait/(400*time.Millisecond)))
			for i, when := range at {
				require.LessOrEqual(t, when-time.Duration(i+1)*400*time.Millisecond, row.worst)
			}
		})
	}
}
