package flaxlike_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/serve"
)

// Requests by many goroutines run during a Fit: each gets its own rows, and all rows of a batch are of one moment
// between two steps.
//
//lazo:race
func TestServe_besideAFit(t *testing.T) {
	m := countedModel(t)
	example := first(t, filled(t, 4, 1), 4)
	example.Fields = example.Fields[:1]
	var moments, batches atomic.Int64
	b, err := serve.New(serve.Func(func(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
		out, err := m.Answer(ctx, batch)
		batches.Add(1)
		if err == nil { // of all requests that are in it
			flat, width := out["preds"].Flat.([]float32), 1+2*wide
			for at := width; at < len(flat); at += width {
				if flat[at+1] != flat[1] {
					err = fmt.Errorf("rows after %v steps and after %v in one batch", flat[1], flat[at+1])
				}
			}
		}
		return out, err
	}), example, serve.Batching{MaxBatch: 4})
	require.NoError(t, err)
	require.NoError(t, b.Warm(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var fitErr error
	begun := make(chan struct{})
	var fitting, asking sync.WaitGroup
	fitting.Go(func() {
		_, fitErr = m.Fit(ctx, filled(t, 32, 1), flaxlike.Fit{Epochs: 1 << 20, Output: io.Discard,
			Callbacks: []loop.Option{loop.Thin(1), loop.Watch(loop.At(loop.Steps(1)), func(context.Context, loop.Report) error { close(begun); return nil })}})
	})
	<-begun
	for g := range 8 {
		asking.Go(func() {
			last := float32(0)
			for i := range besideAFit / 8 {
				of, rows := float32(1000*g+i), 1+i%3
				x := make([]float32, rows)
				for r := range x {
					x[r] = of
				}
				out, err := b.Answer(t.Context(), data.Batch{Fields: []data.Field{data.X(x, rows, 1)}})
				var step float32
				if err == nil {
					step, err = saw(out, of, rows)
				}
				if err == nil && step < last {
					err = fmt.Errorf("after %v steps, and before that after %v", step, last)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if step > last {
					moments.Add(1)
				}
				last = step
			}
		})
	}
	asking.Wait()
	cancel()
	fitting.Wait()
	require.ErrorIs(t, fitErr, context.Canceled)
	require.NoError(t, b.Close())
	require.Greater(t, moments.Load(), int64(8), "the training went on beside them")
	t.Logf("%d requests in %d batches, 0 wrong; %d of them saw another step than the one before", besideAFit/8*8, batches.Load(), moments.Load())

	labelled := data.Batch{Fields: append(slices.Clone(example.Fields), data.Y(make([]float32, 4), 4))}
	_, err = serve.New(m, labelled, serve.Batching{})
	require.ErrorContains(t, err, `serve: the example has "y", which the predictor does not take`)

	require.NoError(t, m.Close())
	_, err = m.Answer(t.Context(), example)
	require.ErrorIs(t, err, serve.ErrClosed, "by which a batcher sees that it is not ready")
	require.False(t, errors.Is(err, serve.ErrInput))
}
