package strategies_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
)

// Each strategy's errors have its own name, also where strategies share the code.
func TestErrorsNameTheStrategy(t *testing.T) {
	r := plugintest.Devices(t, 2)
	for _, name := range []string{"jit", "eager", "data_parallel"} {
		s, err := strategies.Parse(name, r)
		require.NoError(t, err)
		_, err = s.Fetch(nil)
		require.EqualError(t, err, "strategies: "+name+": fetch: there is no value (nil)")
		require.ErrorContains(t, s.FetchInto(nil, nil), "strategies: "+name+": fetch into 0 bytes: ")
	}
}

// A runtime that is nil is an error at the first use, or where a strategy is made that can give one.
func TestNilRuntime(t *testing.T) {
	const none = "the runtime is nil: open one with xla.Open"
	_, err := strategies.DataParallel(nil, strategies.Parallel{})
	require.EqualError(t, err, "strategies: data_parallel: "+none)
	for _, s := range []strategies.Strategy{strategies.Jit(nil), strategies.Eager(nil)} {
		_, err := s.Batch(data.Batch{})
		require.EqualError(t, err, "strategies: "+s.String()+": "+none)
		_, err = s.Compile(strategies.Step{})
		require.EqualError(t, err, "strategies: "+s.String()+": "+none)
		_, err = s.Put("v", tensors.FromValue([]float32{1}))
		require.EqualError(t, err, "strategies: "+s.String()+": "+none)
	}
}
