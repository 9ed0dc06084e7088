package pjrt

import (
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

func second[T any](_ T, err error) error { return err }
