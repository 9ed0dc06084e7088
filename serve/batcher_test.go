package serve_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/serve"
)

// double returns twice its input, and the number of the call; a number below 0 is its error.
type double struct {
	mu    sync.Mutex
	calls []int         // the rows of each
	hold  chan struct{} // if not nil, each call waits for it
	begun chan struct{}
}

var errNegative = fmt.Errorf("%w: below 0", serve.ErrInput)

func (d *double) Answer(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
	x, err := batch.Field("x")
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.calls = append(d.calls, x.Len())
	call := float32(len(d.calls))
	d.mu.Unlock()
	if d.hold != nil {
		d.begun <- struct{}{}
		<-d.hold
	}
	twice, calls := make([]float32, x.Len()), make([]float32, x.Len())
	for i, v := range x.Flat.([]float32) {
		switch {
		case v == -13:
			panic("thirteen")
		case v == -14:
			runtime.Goexit()
		case v < 0:
			return nil, fmt.Errorf("%w: %v", errNegative, v)
		}
		twice[i], calls[i] = 2*v, call
	}
	return map[string]data.Array{"twice": {Flat: twice, Dims: []int{len(twice)}}, "call": {Flat: calls, Dims: []int{len(calls)}}}, nil
}

func batchOf(x ...float32) data.Batch {
	return data.Batch{Fields: []data.Field{data.X(x, len(x))}}
}

func batcher(t *testing.T, of serve.Predictor, set serve.Batching) *serve.Batcher {
	t.Helper()
	b, err := serve.New(of, batchOf(1), set)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

type outcome struct {
	outputs map[string]data.Array
	err     error
}

// ask begins a request, and gives what comes of it.
func ask(ctx context.Context, b *serve.Batcher, x ...float32) <-chan outcome {
	came := make(chan outcome, 1)
	go func() {
		outputs, err := b.Answer(ctx, batchOf(x...))
		came <- outcome{outputs, err}
	}()
	return came
}

func (o outcome) twice(t *testing.T) []float32 {
	t.Helper()
	require.NoError(t, o.err)
	return o.outputs["twice"].Flat.([]float32)
}

func TestBatcher_refusesWhatTheQueueHasNoRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 2, Queue: 3})
		running := ask(t.Context(), b, 1)
		<-d.begun
		ctx, cancel := context.WithCancelCause(t.Context())
		gone, stays := ask(ctx, b, 2, 3), ask(t.Context(), b, 4)
		synctest.Wait()
		require.ErrorIs(t, (<-ask(t.Context(), b, 5)).err, serve.ErrFull)

		// A request that is given up leaves its place to another.
		cause := errors.New("the caller has gone")
		cancel(cause)
		require.ErrorIs(t, (<-gone).err, cause)
		later := ask(t.Context(), b, 6, 7)
		synctest.Wait()
		close(d.hold)
		require.Equal(t, []float32{2}, (<-running).twice(t))
		require.Equal(t, []float32{8}, (<-stays).twice(t))
		require.Equal(t, []float32{12, 14}, (<-later).twice(t))
		require.Equal(t, []int{1, 1, 2}, d.calls)
	})
}

// A caller that has gone may use its memory again, and the others of its batch are answered.
func TestBatcher_cancelledInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 4})
		running := ask(t.Context(), b, 0)
		<-d.begun
		ctx, cancel := context.WithCancel(t.Context())
		mine := batchOf(1)
		gone := make(chan error, 1)
		go func() {
			_, err := b.Answer(ctx, mine)
			mine.Fields[0].Array.Flat.([]float32)[0] = -1
			gone <- err
		}()
		synctest.Wait()
		stays := ask(t.Context(), b, 2)
		synctest.Wait()
		d.hold <- struct{}{}
		<-d.begun // the batch of the two
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		close(d.hold)
		require.Equal(t, []float32{4}, (<-stays).twice(t))
		(<-running).twice(t)
		require.Equal(t, []int{1, 2}, d.calls)
	})
}

func TestBatcher_aFaultIsOfItsRequestAlone(t *testing.T) {
	for _, row := range []struct {
		x    float32
		want string
		is   error
	}{
		{-1, "wrong input: below 0: -1", serve.ErrInput},
		{-13, "panic: thirteen", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
			b := batcher(t, d, serve.Batching{MaxBatch: 4})
			running := ask(t.Context(), b, 0)
			<-d.begun
			before, fault, behind := ask(t.Context(), b, 1), ask(t.Context(), b, row.x), ask(t.Context(), b, 2)
			synctest.Wait()
			close(d.hold)
			(<-running).twice(t)
			require.Equal(t, []float32{2}, (<-before).twice(t))
			require.Equal(t, []float32{4}, (<-behind).twice(t))
			err := (<-fault).err
			require.ErrorContains(t, err, row.want)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			require.Equal(t, []int{1, 4, 1, 1, 1}, d.calls)
		})
	}
}

func TestBatcher_goesOnBehindAGoexit(t *testing.T) {
	b := batcher(t, &double{}, serve.Batching{})
	require.ErrorContains(t, (<-ask(t.Context(), b, -14)).err, "Goexit")
	require.Equal(t, []float32{6}, (<-ask(t.Context(), b, 3)).twice(t))
}

func TestBatcher_closeAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 2, Delay: time.Hour})
		all := []<-chan outcome{ask(t.Context(), b, 1, 2)}
		<-d.begun
		for i := range 5 {
			all = append(all, ask(t.Context(), b, float32(i)))
		}
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- b.Close() }()
		synctest.Wait()
		require.ErrorIs(t, (<-ask(t.Context(), b, 1)).err, serve.ErrClosed)
		close(d.hold)
		require.NoError(t, <-closed)
		for _, r := range all {
			(<-r).twice(t)
		}
		require.Equal(t, []int{2, 2, 2, 1}, d.calls)
	})
}

func TestBatcher_warm(t *testing.T) {
	d := &double{}
	b := batcher(t, d, serve.Batching{MaxBatch: 6})
	require.False(t, b.Ready())
	require.Nil(t, b.Outputs())
	require.NoError(t, b.Warm(t.Context()))
	require.True(t, b.Ready())
	require.Equal(t, []int{1, 2, 4, 6}, d.calls)
	require.Equal(t, []serve.Tensor{{Name: "x", DType: "float32", Dims: []int{}}}, b.Inputs())
	require.Equal(t, []serve.Tensor{{Name: "call", DType: "float32", Dims: []int{}}, {Name: "twice", DType: "float32", Dims: []int{}}}, b.Outputs())
	require.NoError(t, b.Close())
	require.False(t, b.Ready())

	broken := batcher(t, serve.Func(func(context.Context, data.Batch) (map[string]data.Array, error) {
		return map[string]data.Array{"mean": {Flat: []float32{1}, Dims: []int{1}}}, nil
	}), serve.Batching{MaxBatch: 2})
	require.ErrorContains(t, broken.Warm(t.Context()), `output "mean" has dims [1] for 2 examples`)
	require.False(t, broken.Ready())
}

func TestBatcher_wrongInputs(t *testing.T) {
	d := &double{}
	b := batcher(t, d, serve.Batching{MaxBatch: 2})
	for want, fields := range map[string][]data.Field{
		`there is no "x": expected "x", float32 [batch]`: {},
		`"x" is int32 [1]: expected float32 [batch]`:     {data.X([]int32{1}, 1)},
		`"x" is float32 [1 1]: expected float32 [batch]`: {data.X([]float32{1}, 1, 1)},
		`too many examples: "x" has 3, expected 1 to 2`:  {data.X([]float32{1, 2, 3}, 3)},
		`"x" has 0 examples, expected 1 to 2`:            {data.X([]float32{}, 0)},
		`dims [2] mean 2 elements, but Flat has 1`:       {data.X([]float32{1}, 2)},
		`there is no input "y": expected "x", float32`:   {data.X([]float32{1}, 1), data.Y([]float32{1}, 1)},
		`input "x" appears twice`:                        {data.X([]float32{1}, 1), data.X([]float32{1}, 1)},
	} {
		_, err := b.Answer(t.Context(), data.Batch{Fields: fields})
		require.ErrorIs(t, err, serve.ErrInput)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, d.calls)
	_, err := serve.New(nil, batchOf(1), serve.Batching{})
	require.ErrorContains(t, err, "the predictor is nil")
	_, err = serve.New(d, data.Batch{}, serve.Batching{})
	require.ErrorContains(t, err, "serve: the example")
	_, err = serve.New(d, batchOf(1), serve.Batching{MaxBatch: 4, Queue: 3})
	require.ErrorContains(t, err, "Queue is 3, expected at least MaxBatch, 4")
	for _, most := range []int{1<<20 + 1, math.MaxInt} {
		_, err = serve.New(d, batchOf(1), serve.Batching{MaxBatch: most})
		require.ErrorContains(t, err, fmt.Sprintf("serve: MaxBatch is %d, expected at most 1048576", most))
	}
}

// Whatever is together in a batch, each request gets its own rows, all of one call of the predictor.
func TestBatcher_manyCallers(t *testing.T) {
	d := &double{}
	b := batcher(t, d, serve.Batching{MaxBatch: 8, Queue: math.MaxInt})
	var group sync.WaitGroup
	for k := range 16 {
		group.Go(func() {
			for i := range 200 {
				x := make([]float32, 1+(i+k)%5)
				for j := range x {
					x[j] = float32(1000*k + 5*i + j)
				}
				outputs, err := b.Answer(t.Context(), batchOf(x...))
				if err != nil {
					t.Error(err)
					return
				}
				twice, calls := outputs["twice"].Flat.([]float32), outputs["call"].Flat.([]float32)
				for j := range x {
					if len(twice) != len(x) || twice[j] != 2*x[j] || calls[j] != calls[0] {
						t.Errorf("%v became %v, by the calls %v", x, twice, calls)
						return
					}
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d requests in %d batches", 16*200, len(d.calls))
}

// knowing is a predictor that says what it takes.
type knowing struct {
	serve.Func
	names []string
}

func (k knowing) InputNames() []string { return k.names }

// A field of the example that the predictor does not take would be asked of each request.
func TestNew_refusesWhatThePredictorDoesNotTake(t *testing.T) {
	echo := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		return map[string]data.Array{"x": batch.Fields[0].Array}, nil
	})
	example := data.Batch{Fields: []data.Field{data.X([]float32{0}, 1), data.Y([]int32{0}, 1)}}
	_, err := serve.New(knowing{echo, []string{"x"}}, example, serve.Batching{})
	require.EqualError(t, err, `serve: the example has "y", which the predictor does not take, but each request would need: expected only ["x"]`)
	for _, of := range []serve.Predictor{knowing{echo, []string{"x", "y"}}, knowing{echo, nil}, echo} {
		b, err := serve.New(of, example, serve.Batching{})
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
}

// An error of some outputs that may be one request's own is that request's alone; it has the other outputs.
func TestBatcher_anErrorOfOneOutput(t *testing.T) {
	wrong := errors.New("a NaN")
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, serve.Func(func(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
			out, err := d.Answer(ctx, batch)
			if x, _ := batch.Field("x"); err == nil && slices.Contains(x.Flat.([]float32), 3) {
				delete(out, "call")
				err = graphs.OutputErrors{"call": wrong}
			}
			return out, err
		}), serve.Batching{MaxBatch: 4})
		running := ask(t.Context(), b, 0)
		<-d.begun
		before, fault := ask(t.Context(), b, 1), ask(t.Context(), b, 3)
		synctest.Wait()
		close(d.hold)
		(<-running).twice(t)
		require.Equal(t, []float32{2}, (<-before).twice(t))
		got := <-fault
		require.ErrorIs(t, got.err, wrong)
		require.Equal(t, []float32{6}, got.outputs["twice"].Flat)
		require.Len(t, got.outputs, 1)
	})
}
