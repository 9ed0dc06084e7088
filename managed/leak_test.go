package managed_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/lazo-ml/lazo/xla/pjrt"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Nothing is left on the device after Close, and while training runs the number of buffers does not grow beyond the
// logs that wait to be read.
func TestF18_noBufferIsLeft(t *testing.T) {
	r := runtime(t)
	goruntime.GC() // so that what other tests left to the collector is not counted here
	goruntime.GC()
	before := pjrt.Live().Buffers
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	train, test := managed.TrainStep(regression), managed.TestStep(regression)
	most := int64(0)
	count := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error {
		most = max(most, pjrt.Live().Buffers)
		return nil
	})
	const steps = 2000
	_, err = loop.New(loop.On(loop.EachStep, train), loop.On(loop.Every(loop.Steps(100)), test)).
		Run(t.Context(), state, line(t, 64).Batches(16, data.Forever()), loop.Until(loop.Steps(steps)), loop.Keep(loop.Every(loop.Steps(10))), count)
	require.NoError(t, err)
	require.NoError(t, errors.Join(train.Close(), test.Close(), state.Close()))
	require.LessOrEqual(t, most-before, int64(2*256+len(state.Names())+2))
	require.Equal(t, before, pjrt.Live().Buffers)
	t.Logf("F18: %d steps, at most %d buffers at once, %d left", steps, most-before, pjrt.Live().Buffers-before)
}
