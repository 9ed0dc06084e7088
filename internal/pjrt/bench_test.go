package pjrt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const tinyProgram = `module @tiny {
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.add %x, %one : tensor<f32>
  return %y : tensor<f32>
}}`

// stateProgram adds 1 to each of n values, in place.
func stateProgram(n, size int) string {
	var args, body, results, types []string
	for i := range n {
		args = append(args, fmt.Sprintf("%%a%d: tensor<%dxf32> {tf.aliasing_output = %d : i32}", i, size, i))
		body = append(body, fmt.Sprintf("%%r%d = stablehlo.add %%a%d, %%one : tensor<%dxf32>", i, i, size))
		results = append(results, fmt.Sprintf("%%r%d", i))
		types = append(types, fmt.Sprintf("tensor<%dxf32>", size))
	}
	return fmt.Sprintf("module @state {\nfunc.func @main(%s) -> (%s) {\n%%one = stablehlo.constant dense<1.0> : tensor<%dxf32>\n%s\nreturn %s : %s\n}}",
		strings.Join(args, ", "), strings.Join(types, ", "), size, strings.Join(body, "\n"), strings.Join(results, ", "), strings.Join(types, ", "))
}

// stateCall prepares a call of stateProgram whose values are 0, 1, 2, …
func stateCall(t testing.TB, c *Client, n, size int) (*Call, []*Buffer) {
	t.Helper()
	e := compile(t, c, stateProgram(n, size), CompileOptions{})
	inPlace := map[int]int{}
	for i := range n {
		inPlace[i] = i
	}
	call, err := e.NewCall(CallOptions{InPlace: inPlace})
	require.NoError(t, err)
	state := make([]*Buffer, n)
	for i := range state {
		values := make([]float32, size)
		for j := range values {
			values[j] = float32(i)
		}
		state[i] = put(t, c.Devices()[0], Float32, values, size)
		require.NoError(t, call.Set(0, i, state[i]))
	}
	return call, state
}

func BenchmarkRunInPlace(b *testing.B) {
	for _, n := range []int{10, 150, 600} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			call, _ := stateCall(b, openCPU(b, 1), n, 4)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
