package pjrt

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every method after Close, of the value or of its client, returns ErrClosed.
func TestF41_UseAfterClose(t *testing.T) {
	count := 0
	for _, whole := range []bool{false, true} {
		c := openCPU(t, 1)
		d := c.Devices()[0]
		e := compile(t, c, stateProgram(1, 4), CompileOptions{})
		call, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}})
		require.NoError(t, err)
		b := put(t, d, Float32, make([]float32, 4), 4)
		require.NoError(t, call.Set(0, 0, b))
		event, err := b.Ready()
		require.NoError(t, err)
		view, err := b.View()
		require.NoError(t, err)
		if whole {
			require.NoError(t, c.Close())
		} else {
			for _, thing := range []interface{ Close() error }{view, event, call, b, e} {
				require.NoError(t, thing.Close())
			}
		}
		dst := make([]byte, 16)
		rows := map[string]func() error{
			"view.Close":              view.Close,
			"event.Close":             event.Close,
			"event.Await":             event.Await,
			"event.Ready":             func() error { _, err := event.Ready(); return err },
			"event.OnReady":           func() error { return event.OnReady(func(error) {}) },
			"call.Close":              call.Close,
			"call.Run":                func() error { _, err := call.Run(); return err },
			"call.Start":              func() error { _, err := call.Start(); return err },
			"call.Set":                func() error { return call.Set(0, 0, b) },
			"call.KeepArguments":      func() error { return call.KeepArguments(true) },
			"buffer.Close":            b.Close,
			"buffer.Delete":           b.Delete,
			"buffer.IsDeleted":        func() error { _, err := b.IsDeleted(); return err },
			"buffer.Ready":            func() error { _, err := b.Ready(); return err },
			"buffer.Size":             func() error { _, err := b.Size(); return err },
			"buffer.View":             func() error { _, err := b.View(); return err },
			"buffer.CopyTo":           func() error { _, err := b.CopyTo(d); return err },
			"buffer.ToHost":           func() error { return b.ToHost(dst) },
			"buffer.StartToHost":      func() error { _, err := b.StartToHost(dst); return err },
			"executable.Close":        e.Close,
			"executable.Serialize":    func() error { _, err := e.Serialize(); return err },
			"executable.CostAnalysis": func() error { _, err := e.CostAnalysis(); return err },
			"executable.Memory":       func() error { _, err := e.Memory(); return err },
			"executable.Fingerprint":  func() error { _, err := e.Fingerprint(); return err },
			"executable.Optimized":    func() error { _, _, err := e.OptimizedProgram(); return err },
			"executable.NewCall":      func() error { _, err := e.NewCall(CallOptions{}); return err },
			"executable.Execute":      func() error { _, err := e.Execute([][]*Buffer{{b}}, ExecuteOptions{}); return err },
		}
		if whole {
			rows["client.Close"] = c.Close
			rows["client.Compile"] = func() error { _, err := c.Compile([]byte(tinyProgram), CompileOptions{}); return err }
			rows["client.Load"] = func() error { _, err := c.Load([]byte("x")); return err }
			rows["device.Put"] = func() error { _, err := d.Put(Array{Shape: Shape{Uint8, []int{16}}, Data: dst}); return err }
			rows["device.Share"] = func() error { _, err := d.Share(Array{Shape: Shape{Uint8, []int{16}}, Data: dst}, nil); return err }
			rows["device.Attributes"] = func() error { _, err := d.Attributes(); return err }
			rows["device.Memories"] = func() error { _, err := d.Memories(); return err }
			rows["device.MemoryStats"] = func() error { _, err := d.MemoryStats(); return err }
		}
		for name, f := range rows {
			require.ErrorIs(t, f(), ErrClosed, "%s, client closed: %v", name, whole)
			count++
		}
		// Constant properties remain available.
		assert.Equal(t, "4xf32", b.Shape().String())
		assert.Equal(t, "state", e.Name())
		assert.Equal(t, "cpu", c.Platform())
	}
	t.Logf("%d calls after Close: ErrClosed each", count)
}

// Close during use by other goroutines: a typed error or the result, never a crash.
func TestF41_CloseWhileInUse(t *testing.T) {
	const rounds = 60
	results := map[string]int{}
	var mu sync.Mutex
	note := func(t *testing.T, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			results["done"]++
		case errors.Is(err, ErrClosed):
			results["closed"]++
		case errors.Is(err, ErrBusy):
			results["busy"]++
		default:
			t.Errorf("%v", err)
		}
	}
	for round := range rounds {
		c := openCPU(t, 1)
		call, state := stateCall(t, c, 4, 64)
		e := call.run.of
		closers := []interface{ Close() error }{c, call, state[0], e}
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 2 {
			wg.Go(func() {
				<-begin
				for range 20 {
					_, err := call.Run()
					note(t, err)
				}
			})
		}
		wg.Go(func() {
			<-begin
			dst := make([]byte, 64*4)
			for range 20 {
				note(t, state[0].ToHost(dst))
				view, err := state[1].View()
				if err == nil {
					err = view.Close()
				}
				note(t, err)
			}
		})
		for range 2 {
			wg.Go(func() {
				<-begin
				note(t, closers[round%len(closers)].Close())
			})
		}
		close(begin)
		wg.Wait()
		if err := c.Close(); !isClosed(err) {
			require.NoError(t, err)
		}
		now := Live()
		require.Equal(t, Counts{Collected: now.Collected}, now)
	}
	t.Logf("%d rounds: %v", rounds, results)
	require.Positive(t, results["done"])
	require.Positive(t, results["closed"])
}

func TestBusy(t *testing.T) {
	c := openCPU(t, 1)
	call, state := stateCall(t, c, 2, 4)
	view, err := state[1].View()
	require.NoError(t, err)
	_, err = call.Run()
	require.ErrorIs(t, err, ErrBusy, "the run would replace what is looked at")
	assert.Contains(t, err.Error(), "argument 1")
	require.NoError(t, view.Close())
	_, err = call.Run()
	require.NoError(t, err)
	require.NoError(t, call.Set(0, 1, state[0]))
	_, err = call.Run()
	require.ErrorIs(t, err, ErrBusy, "one buffer in two places that are replaced")
	assert.Equal(t, []float32{1, 1, 1, 1}, fetch[float32](t, state[0], 4), "nothing was done")
}
