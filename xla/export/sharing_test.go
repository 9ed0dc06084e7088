package export

import (
	"errors"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// R02: many goroutines run a model that changes its state. Each run counts once, and each read of the state is
// consistent. Close waits for running calls, and later runs return ErrClosed.
func TestR02_exportedByManyGoroutines(t *testing.T) {
	p, err := readBack(written(t))
	require.NoError(t, err)
	m, err := p.Compile(plugintest.CPU(t))
	require.NoError(t, err)
	const goroutines, runs = 8, 50
	before, err := m.State()
	require.NoError(t, err)
	first := before["/n"].Value().(int64)
	sums := before["/sum"].Value().([]float32)
	together := func(state map[string]*tensors.Tensor) {
		n, sum := float32(state["/n"].Value().(int64)-first), state["/sum"].Value().([]float32)
		if sum[0] != sums[0]+5*n || sum[1] != sums[1]+9*n {
			t.Errorf("after %v runs the sum is %v", n, sum)
		}
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range runs {
				_, runErr := m.Run(p.Example.Inputs)
				state, err := m.State()
				if err = errors.Join(runErr, err); err != nil {
					t.Error(err)
					return
				}
				together(state)
			}
		})
	}
	wg.Wait()
	after, err := m.State()
	require.NoError(t, err)
	require.Equal(t, first+goroutines*runs, after["/n"].Value())
	for range goroutines {
		wg.Go(func() {
			for {
				if _, err := m.Run(p.Example.Inputs); err != nil {
					if !errors.Is(err, xla.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	require.NoError(t, m.Close())
	wg.Wait()
	t.Logf("R02: %d runs of an exported step by %d goroutines: each counted once", goroutines*runs, goroutines)
}
