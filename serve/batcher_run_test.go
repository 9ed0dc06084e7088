package serve_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/serve"
)

func TestBatcher_runsTogetherWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 6})
		first := ask(t.Context(), b, 1)
		<-d.begun
		var rest []<-chan outcome
		for i := range 3 {
			rest = append(rest, ask(t.Context(), b, float32(10*i), float32(10*i+1)))
			synctest.Wait() // so that they wait in this order
		}
		last := ask(t.Context(), b, 7)
		synctest.Wait()
		close(d.hold)
		require.Equal(t, []float32{2}, (<-first).twice(t))
		for i, r := range rest {
			o := <-r
			require.Equal(t, []float32{float32(20 * i), float32(20*i + 2)}, o.twice(t))
			require.Equal(t, []float32{2, 2}, o.outputs["call"].Flat, "one call for all of a batch")
		}
		require.Equal(t, []float32{14}, (<-last).twice(t))
		require.Equal(t, []int{1, 6, 1}, d.calls)
	})
}

func TestBatcher_waitsForADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{}
		b := batcher(t, d, serve.Batching{MaxBatch: 4, Delay: time.Second})
		begin := time.Now()
		one, two := ask(t.Context(), b, 1), ask(t.Context(), b, 2)
		require.Equal(t, []float32{2}, (<-one).twice(t))
		require.Equal(t, []float32{4}, (<-two).twice(t))
		require.Equal(t, time.Second, time.Since(begin))
		full := ask(t.Context(), b, 1, 2, 3, 4)
		(<-full).twice(t)
		require.Equal(t, time.Second, time.Since(begin), "a full batch does not wait")
		require.Equal(t, []int{2, 4}, d.calls)
	})
}
