package pjrt

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// stepProgram is a small training step: two values of state, a batch from the host, one number for the logs.
const stepProgram = `module @step {
func.func @main(%sum: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %n: tensor<i32> {tf.aliasing_output = 1 : i32},
    %scale: tensor<f32>, %batch: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<f32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %wide = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %scaled = stablehlo.multiply %batch, %wide : tensor<4xf32>
  %new = stablehlo.add %sum, %scaled : tensor<4xf32>
  %m = stablehlo.add %n, %one : tensor<i32>
  %total = stablehlo.reduce(%new init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %new, %m, %total : tensor<4xf32>, tensor<i32>, tensor<f32>
}}`

func stepOptions() CallOptions {
	return CallOptions{InPlace: map[int]int{0: 0, 1: 1}, Host: []HostInput{{3, Shape{Float32, []int{4}}}}, Read: []int{2}}
}

// Any sequence of runs, waiting or not, donating or not, returns the expected sums.
func TestCallIsTheSameAsByHand(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stepProgram, CompileOptions{})
	rapid.Check(t, func(rt *rapid.T) {
		before := Live()
		d := c.Devices()[0]
		sum, n := put(t, d, Float32, make([]float32, 4), 4), put(t, d, Int32, []int32{0})
		scale := put(t, d, Float32, []float32{2})
		call, err := e.NewCall(stepOptions())
		require.NoError(rt, err)
		require.NoError(rt, firstError(call.Set(0, 0, sum), call.Set(0, 1, n), call.Set(0, 2, scale)))
		want, runs := make([]float32, 4), int32(0)
		for range rapid.IntRange(0, 8).Draw(rt, "runs") {
			batch := make([]float32, 4) // of whole numbers, so that sums are exact
			for i := range batch {
				batch[i] = float32(rapid.IntRange(-100, 100).Draw(rt, "batch"))
			}
			require.NoError(rt, call.KeepArguments(rapid.Bool().Draw(rt, "keep")))
			total := float32(0)
			for i := range want {
				want[i] += batch[i] * 2
				total += want[i]
			}
			runs++
			var out []*Buffer
			switch rapid.SampledFrom([]string{"run", "run into", "start", "start shared"}).Draw(rt, "way") {
			case "run into":
				read := make([]float32, 1)
				outputs, err := call.RunInto([][]byte{Bytes(read)}, Bytes(batch))
				require.NoError(rt, err)
				clear(batch)
				require.Empty(rt, outputs[0], "buffers of what was read")
				require.Equal(rt, total, read[0], "run %d", runs)
				continue
			case "run":
				outputs, err := call.Run(Bytes(batch))
				require.NoError(rt, err)
				out = outputs[0]
			case "start shared":
				x, err := call.StartShared(Bytes(batch))
				require.NoError(rt, err)
				out = x.Outputs[0]
				require.NoError(rt, firstError(x.Await(), x.Done[0].Close()))
				clear(batch)
			default:
				x, err := call.Start(Bytes(batch))
				require.NoError(rt, err)
				clear(batch) // the batch's memory is free to reuse
				out = x.Outputs[0]
				require.NoError(rt, x.Done[0].Close())
			}
			require.Len(rt, out, 1)
			require.Equal(rt, total, fetch[float32](t, out[0], 1)[0], "run %d", runs)
			require.NoError(rt, out[0].Close())
		}
		require.Equal(rt, want, fetch[float32](t, sum, 4))
		require.Equal(rt, []int32{runs}, fetch[int32](t, n, 1))
		require.NoError(rt, firstError(call.Close(), sum.Close(), n.Close(), scale.Close()))
		require.Equal(rt, before, Live())
	})
}

// The state's memory has the same address before and after.
func TestInPlaceKeepsOneCopy(t *testing.T) {
	c := openCPU(t, 1)
	const size = 1 << 16
	call, state := stateCall(t, c, 1, size)
	place := func() *byte {
		view, err := state[0].View()
		require.NoError(t, err)
		defer view.Close()
		return &view.Data[0]
	}
	before := place()
	for range 5 {
		_, err := call.Run()
		require.NoError(t, err)
		require.Same(t, before, place())
	}
	assert.EqualValues(t, 1, Live().Buffers)
	require.NoError(t, call.KeepArguments(true))
	_, err := call.Run()
	require.NoError(t, err)
	assert.NotSame(t, before, place(), "the kept argument was copied")
	assert.Equal(t, float32(6), fetch[float32](t, state[0], size)[0])
	memory, err := call.run.of.Memory()
	require.NoError(t, err)
	assert.EqualValues(t, size*4, memory.Aliased)
	assert.EqualValues(t, size*4, memory.Arguments)
	donated, err := call.run.of.Donated()
	require.NoError(t, err)
	assert.Equal(t, map[int]int{0: 0}, donated)
}

// Two calls of different programs use one state, as training and evaluation do.
func TestCallsShareTheirBuffers(t *testing.T) {
	c := openCPU(t, 1)
	a, state := stateCall(t, c, 1, 4)
	e := compile(t, c, stateProgram(1, 4), CompileOptions{})
	b, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}})
	require.NoError(t, err)
	require.NoError(t, b.Set(0, 0, state[0]))
	for _, call := range []*Call{a, b, b, a} {
		_, err := call.Run()
		require.NoError(t, err)
	}
	assert.Equal(t, []float32{4, 4, 4, 4}, fetch[float32](t, state[0], 4))
}

func TestCallOptionsThatAreRefused(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stepProgram, CompileOptions{})
	four := Shape{Float32, []int{4}}
	rows := []struct {
		name    string
		options CallOptions
		text    string
	}{
		{"no such output", CallOptions{InPlace: map[int]int{3: 0}}, "there are 3 outputs and 4 arguments"},
		{"no such argument", CallOptions{InPlace: map[int]int{0: 4}}, "there are 3 outputs and 4 arguments"},
		{"other shape", CallOptions{InPlace: map[int]int{0: 1}}, "output 0 of shape 4xf32 in place of argument 1 of shape i32"},
		{"replaced twice", CallOptions{InPlace: map[int]int{2: 2, 0: 0}, Host: []HostInput{{2, Shape{Float32, nil}}}}, "replaced twice"},
		{"host input of another shape", CallOptions{Host: []HostInput{{3, Shape{Float64, []int{4}}}}}, "4xf64"},
		{"two host inputs", CallOptions{Host: []HostInput{{3, four}, {3, four}}}, "two host inputs"},
		{"no such output to be read", CallOptions{Read: []int{3}}, "output 3 is to be read"},
		{"a replaced output to be read", CallOptions{InPlace: map[int]int{0: 0}, Read: []int{0}}, "output 0 is to be read"},
		{"an output to be read twice", CallOptions{Read: []int{2, 2}}, "output 2 is to be read"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := e.NewCall(row.options)
			require.ErrorIs(t, err, ErrInvalidArgument)
			assert.Contains(t, err.Error(), row.text)
		})
	}
	call, err := e.NewCall(stepOptions())
	require.NoError(t, err)
	d := c.Devices()[0]
	x := put(t, d, Float32, make([]float32, 4), 4)
	for _, row := range []struct {
		name string
		err  error
		text string
	}{
		{"host input", call.Set(0, 3, x), "argument 3 is a host input"},
		{"out of range", call.Set(0, 4, x), "there are 4 arguments"},
		{"device", call.Set(1, 0, x), "1 devices"},
		{"nothing", call.Set(0, 0, nil), "there is no buffer"},
		{"wrong shape", call.Set(0, 0, put(t, d, Float32, make([]float32, 3), 3)), "argument 0: invalid argument: expected shape 4xf32, got 3xf32"},
		{"wrong type", call.Set(0, 0, put(t, d, Int32, make([]int32, 4), 4)), "expected shape 4xf32, got 4xi32"},
		{"no host input", second(call.Run()), "expected 1 host inputs, got 0"},
		{"short host input", second(call.Run(make([]byte, 12))), "expected 16 bytes, got 12"},
		{"memory for no output", second(call.RunInto([][]byte{{}, {}}, make([]byte, 16))), "expected memory for 1 outputs to be read, got 2"},
		{"short memory", second(call.RunInto([][]byte{make([]byte, 3)}, make([]byte, 16))), "expected room for 4 bytes, got 3"},
		{"not set", second(call.Run(make([]byte, 16))), "argument 0 on device 0 is not set"},
	} {
		require.ErrorIs(t, row.err, ErrInvalidArgument, row.name)
		assert.Contains(t, row.err.Error(), row.text, row.name)
	}
}

func second[T any](_ T, err error) error { return err }

// A program that does not fit in memory fails, and its state is intact.
func TestG04_F17_OutOfMemory(t *testing.T) {
	c := openCPU(t, 1)
	const huge = 1 << 42 // elements: 16 TiB
	e := compile(t, c, fmt.Sprintf(`module @huge {
func.func @main(%%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %%s: tensor<f32>) -> (tensor<4xf32>, tensor<%[1]dxf32>) {
  %%y = stablehlo.add %%x, %%x : tensor<4xf32>
  %%w = stablehlo.broadcast_in_dim %%s, dims = [] : (tensor<f32>) -> tensor<%[1]dxf32>
  return %%y, %%w : tensor<4xf32>, tensor<%[1]dxf32>
}}`, huge), CompileOptions{})
	call, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}})
	require.NoError(t, err)
	values := []float32{1, 2, 3, float32(math.Inf(1))}
	x := put(t, c.Devices()[0], Float32, values, 4)
	require.NoError(t, firstError(call.Set(0, 0, x), call.Set(0, 1, put(t, c.Devices()[0], Float32, []float32{1}))))
	before := Live()
	intact, told := 0, 0
	for i := range 20 {
		require.NoError(t, call.KeepArguments(i%2 == 0))
		_, err := call.Run()
		require.ErrorIs(t, err, ErrOutOfMemory)
		require.Equal(t, before, Live())
		if errors.Is(err, ErrArgumentsLost) {
			require.NotZero(t, i%2, "arguments that were to be kept are lost: %v", err)
			require.Error(t, x.ToHost(make([]byte, 16)))
			require.NoError(t, x.Close()) // or the garbage collector closes it during a later run
			told++
			x = put(t, c.Devices()[0], Float32, values, 4)
			require.NoError(t, call.Set(0, 0, x))
			before = Live()
			continue
		}
		intact++
		require.Equal(t, values, fetch[float32](t, x, 4))
	}
	t.Logf("20 failed runs: state intact %d times, reported lost %d times; always intact when kept", intact, told)
}
