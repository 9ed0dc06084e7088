package pjrt

import (
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// It computes for a millisecond, one product after the other.
const slowProgram = `module @slow {
func.func @main(%x: tensor<512xf32>, %w: tensor<512x512xf32>) -> tensor<512xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<100> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %y = %x, %v = %w) : tensor<i32>, tensor<512xf32>, tensor<512x512xf32> cond {
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.dot_general %y, %v, contracting_dims = [0] x [0] : (tensor<512xf32>, tensor<512x512xf32>) -> tensor<512xf32>
    %t = stablehlo.tanh %z : tensor<512xf32>
    stablehlo.return %next, %t, %v : tensor<i32>, tensor<512xf32>, tensor<512x512xf32>
  }
  return %r#1 : tensor<512xf32>
}}`

// waits counts how often this thread has waited for something.
func waits(t *testing.T) int64 {
	t.Helper()
	const ofThread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(ofThread, &usage))
	return usage.Nvcsw
}

// A caller computes itself what it waits for, with the same bits, and next to others.
func TestRunInline(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return
	}
	c := openCPU(t, 1)
	p, x, w := c.Plugin(), make([]float32, 512), make([]float32, 512*512)
	for i := range w {
		x[i%512] = 1 / float32(i%7+1)
		w[i] = float32(i%13-6) / 64
	}
	e := compile(t, c, slowProgram, CompileOptions{})
	weights := put(t, c.Devices()[0], Float32, w, 512, 512)
	run := func(times int) (waited int64, result []float32) {
		call, err := e.NewCall(CallOptions{Host: []HostInput{{Argument: 0, Shape: Shape{Float32, []int{512}}}}, Read: []int{0}})
		require.NoError(t, err)
		require.NoError(t, call.Set(0, 1, weights))
		result = make([]float32, 512)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := waits(t)
		for range times {
			_, err := call.RunInto([][]byte{Bytes(result)}, Bytes(x))
			require.NoError(t, err)
		}
		waited = waits(t) - before
		require.NoError(t, call.Close())
		return waited, result
	}
	const times = 40
	before := p.mark
	defer func() { p.mark = before }()
	p.mark = new(Plugin).mark
	waited, want := run(times)
	assert.GreaterOrEqual(t, waited, int64(times/2))
	require.NoError(t, p.RunInline())
	waited, result := run(times)
	assert.Less(t, waited, int64(times/4))
	require.Equal(t, want, result)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, result := run(times)
			assert.Equal(t, want, result)
		})
	}
	wg.Wait()
}

func TestRunInline_ofAnUnknownBuild(t *testing.T) {
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	err = p.RunInline()
	require.ErrorIs(t, err, ErrUnimplemented)
	require.ErrorContains(t, err, p.Path())
}
