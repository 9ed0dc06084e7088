package train_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// padded is a batch of rows of which the first n are real.
type padded struct {
	rows []int
	n    int
}

func (b padded) Samples() int { return b.n }

// deal deals rows out in batches of one size, the last one filled up with -1.
func deal(rows, size int) loop.Data[padded] {
	return func(yield func(padded, error) bool) {
		for from := 0; from < rows; from += size {
			b := padded{n: min(size, rows-from)}
			for i := range size {
				if i < b.n {
					b.rows = append(b.rows, from+i)
				} else {
					b.rows = append(b.rows, -1)
				}
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

var timesTen = train.Predict[int, padded, []int]{
	Step: func(_ context.Context, times int, b padded) ([]int, error) {
		var out []int
		for _, r := range b.rows[:b.n] { // without the padding
			out = append(out, times*r)
		}
		return out, nil
	},
}

// gather returns all outputs, and the error at the end.
func gather[P any](outputs iter.Seq2[P, error]) (all []P, err error) {
	for output, err := range outputs {
		if err != nil {
			return all, err
		}
		all = append(all, output)
	}
	return all, nil
}

func TestB110_predictInBatches(t *testing.T) {
	outputs, err := gather(timesTen.All(t.Context(), 10, deal(100, 50)))
	require.NoError(t, err)
	rows := slices.Concat(outputs...)
	require.Len(t, rows, 100)
	for i, r := range rows {
		require.Equal(t, 10*i, r)
	}
	t.Logf("B110: %d rows of batches of 50, in order", len(rows))
}

// However the rows are dealt out, they come back, in order and without the padding.
func TestPredict_rowsAreThoseOfTheData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 60).Draw(t, "rows"), rapid.IntRange(1, 17).Draw(t, "batch size")
		outputs, err := gather(timesTen.All(context.Background(), 10, deal(n, size)))
		rows := slices.Concat(outputs...)
		if err != nil || len(rows) != n {
			t.Fatal(err, len(rows))
		}
		for i, r := range rows {
			if r != 10*i {
				t.Fatalf("row %d is %d", i, r)
			}
		}
	})
}

// A batch is asked for when the output of the one before it has been used: nothing is made ahead or kept.
func TestPredict_streams(t *testing.T) {
	var trace []string
	data := func(yield func(padded, error) bool) {
		for b := range deal(6, 2) {
			trace = append(trace, "batch")
			if !yield(b, nil) {
				return
			}
		}
	}
	for output, err := range timesTen.All(t.Context(), 1, loop.Data[padded](data)) {
		require.NoError(t, err)
		trace = append(trace, fmt.Sprint(output))
		if output[0] == 2 {
			break
		}
	}
	require.Equal(t, []string{"batch", "[0 1]", "batch", "[2 3]"}, trace)

	result, err := timesTen.Run(t.Context(), 1, loop.Data[padded](data), func(context.Context, []int) error { return nil })
	require.NoError(t, err)
	require.Zero(t, result.History.Len())
	require.EqualValues(t, 6, result.Elapsed.Samples)
}

func TestPredict_endings(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(boom)
	p := timesTen
	p.Step = func(ctx context.Context, s int, b padded) ([]int, error) {
		if b.rows[0] == 4 {
			return nil, boom
		}
		return timesTen.Step(ctx, s, b)
	}
	for _, row := range []struct {
		name string
		seen [][]int
		err  string
		p    train.Predict[int, padded, []int]
		ctx  context.Context
		data loop.Data[padded]
	}{
		{name: "a step fails", p: p, data: deal(6, 2), seen: [][]int{{0, 1}, {2, 3}}, err: "loop: step 3: each step: predict step: boom"},
		{name: "cancelled", p: timesTen, ctx: ctx, data: deal(6, 2), err: "loop: step 0: cancelled: boom"},
		{name: "no data", p: timesTen, err: "loop: no data given"},
		{name: "no step", data: deal(6, 2), err: "loop: task 1 (each step: predict step): no function given"},
		{name: "nothing to predict", p: timesTen, data: deal(0, 2)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.ctx == nil {
				row.ctx = t.Context()
			}
			seen, err := gather(row.p.All(row.ctx, 1, row.data))
			require.Equal(t, row.seen, seen)
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, row.err)
			}
		})
	}
	_, err := timesTen.Run(t.Context(), 1, deal(1, 1), nil)
	require.EqualError(t, err, "loop: task 2 (each step: output): no function given")
	_, err = timesTen.Run(t.Context(), 1, deal(1, 1), func(context.Context, []int) error { return boom })
	require.EqualError(t, err, "loop: step 1: each step: output: boom")
}

// What goes wrong in the consumer's loop is the consumer's, and the run ends with it (goleak looks for one that does
// not).
func TestPredict_panicOfTheConsumer(t *testing.T) {
	ended := loop.Reason(-1)
	end := attend("end", loop.EachStep, func() loop.Attendant { return attendant{func(e loop.Ending) { ended = e.Reason }} })
	require.PanicsWithValue(t, "mine", func() {
		for range timesTen.All(t.Context(), 1, deal(6, 2), end) {
			panic("mine")
		}
	})
	require.Equal(t, loop.Stopped, ended)
}

// A step that wants to stop has made its output.
func TestPredict_stopInAStep(t *testing.T) {
	p := timesTen
	p.Step = func(ctx context.Context, s int, b padded) ([]int, error) {
		out, _ := timesTen.Step(ctx, s, b)
		return out, loop.ErrStop
	}
	outputs, err := gather(p.All(t.Context(), 10, deal(1, 4)))
	require.NoError(t, err)
	require.Equal(t, [][]int{{0}}, outputs)
}
