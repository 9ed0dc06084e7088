package pjrt

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// R21: several goroutines read one buffer by copies and by views. The plugin does not guard its list of readers:
// without lazo's lock, freeing the buffer ended the process.
func TestR21_readersOfOneBuffer(t *testing.T) {
	c := openCPU(t, 1)
	d := c.AddressableDevices()[0]
	const rounds, readers, reads = 10, 8, 500
	data := make([]byte, 4*256)
	for range rounds {
		b, err := d.Put(Array{Shape: Shape{Float32, []int{256}}, Data: data})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range readers {
			wg.Go(func() {
				for range reads {
					if i%2 == 0 {
						if err := b.ToHost(make([]byte, len(data))); err != nil {
							t.Error(err)
						}
						continue
					}
					v, err := b.View()
					if err == nil {
						err = v.Close()
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, b.Close())
	}
	t.Logf("R21: %d buffers, each read %d times by each of %d: no crash", rounds, reads, readers)
}

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

// R21: an object closed during a garbage collection is closed once, by Close and not first by the collector.
func TestR21_closedUnderTheCollector(t *testing.T) {
	c := openCPU(t, 1)
	b, err := c.AddressableDevices()[0].Put(Array{Shape: Shape{Float32, []int{256}}, Data: make([]byte, 4*256)})
	require.NoError(t, err)
	done := make(chan struct{})
	var wg, collecting sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	for range 8 {
		wg.Go(func() {
			for range 4000 {
				v, err := b.View()
				if err == nil {
					err = v.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(done)
	collecting.Wait()
	require.NoError(t, b.Close())
}
