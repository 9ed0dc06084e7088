package pjrt

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// R21: several read one buffer at once, by copies and by views. The plugin's list of a buffer's readers has no guard of
// its own: without one here the process ended when the buffer was freed.
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

// R21: a call that was idle while the collector freed the host memory of its last run is used while the collector is at
// work. It must not be told of that memory: it would end the process ("found pointer to free object").
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
		runtime.GC() // what the calls were given is freed
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

// R21: what is closed while the collector is at work is closed once: by Close, and not by the collector before it.
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
