package pjrt

import (
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
