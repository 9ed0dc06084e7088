package ahead_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/ahead"
)

func deep(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deep(n-1, f)
}

// A goroutine of package data is found at any depth of its stack.
func TestHere(t *testing.T) {
	require.False(t, ahead.Here())
	for _, depth := range []int{0, 1, 50, 61, 62, 63, 64, 200} {
		var source iter.Seq2[int, error] = func(yield func(int, error) bool) {
			deep(depth, func() {
				if !ahead.Here() {
					t.Errorf("depth %d: not found", depth)
				}
			})
			yield(1, nil)
		}
		for range data.Prefetch(source, 2) {
			require.False(t, ahead.Here(), "the consumer is not ahead")
		}
	}
}

func TestOrigin(t *testing.T) {
	own, _ := ahead.Origin()
	require.Regexp(t, `^\d+$`, own)
	type ids struct{ own, parent string }
	found := make(chan ids)
	for _, depth := range []int{0, 500} { // also a stack of several buffers
		go deep(depth, func() {
			own, parent := ahead.Origin()
			found <- ids{own, parent}
		})
		in := <-found
		require.NotEqual(t, own, in.own)
		require.Equal(t, own, in.parent)
	}
}
