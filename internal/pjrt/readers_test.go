package pjrt

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// R21: a Call is used during a garbage collection, after the collector freed the host memory of its last run. The
// collector must not see that old address: it would end the process ("found pointer to free object").
func TestR21_callsUnderTheCollector(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, `module @add {
		func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
			%sum = stablehlo.add %a, %a : tensor<4xf32>
			return %sum : tensor<4xf32>
		}
	}`, CompileOptions{})
	const calls = 64
	var list []*Call
	for range calls {
		call, err := e.NewCall(CallOptions{Host: []HostInput{{0, Shape{Float32, []int{4}}}}})
		require.NoError(t, err)
		list = append(list, call)
	}
	run := func(call *Call) {
		outputs, err := call.Run(make([]byte, 16))
		require.NoError(t, err)
		require.NoError(t, outputs[0][0].Close())
	}
	const rounds = 40
	for range rounds {
		for _, call := range list {
			run(call)
		}
		runtime.GC() // frees the host memory of earlier calls
		var over atomic.Bool
		go func() { runtime.GC(); over.Store(true) }()
		for i := 0; !over.Load(); i++ {
			run(list[i%calls])
		}
	}
	for _, call := range list {
		require.NoError(t, call.Close())
	}
	t.Logf("R21: %d calls, each idle over %d collections: no crash", calls, rounds)
}
