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

func BenchmarkRunTiny(b *testing.B) {
	c := openCPU(b, 1)
	call, err := compile(b, c, tinyProgram, CompileOptions{}).NewCall(CallOptions{})
	require.NoError(b, err)
	require.NoError(b, call.Set(0, 0, put(b, c.Devices()[0], Float32, []float32{1})))
	b.Run("waiting", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out, err := call.Run()
			if err == nil {
				err = out[0][0].Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("event", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x, err := call.Start()
			if err == nil {
				err = firstError(x.Await(), x.Close())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
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

// BenchmarkRunHost passes a batch to a run, as a host input and by a buffer made before.
func BenchmarkRunHost(b *testing.B) {
	const size = 1 << 18
	c := openCPU(b, 1)
	program := fmt.Sprintf(`module @host {
func.func @main(%%x: tensor<%[1]dxf32>) -> tensor<1xf32> {
  %%y = stablehlo.slice %%x [0:1] : (tensor<%[1]dxf32>) -> tensor<1xf32>
  return %%y : tensor<1xf32>
}}`, size)
	e := compile(b, c, program, CompileOptions{})
	shape := Shape{Float32, []int{size}}
	data := Bytes(make([]float32, size))
	b.Run("in the call", func(b *testing.B) {
		call, err := e.NewCall(CallOptions{Host: []HostInput{{0, shape}}})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			out, err := call.Run(data)
			if err == nil {
				err = out[0][0].Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by Put", func(b *testing.B) {
		call, err := e.NewCall(CallOptions{})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			x, err := c.Devices()[0].Put(Array{Shape: shape, Data: data})
			if err == nil {
				err = call.Set(0, 0, x)
			}
			if err != nil {
				b.Fatal(err)
			}
			out, err := call.Run()
			if err == nil {
				err = firstError(out[0][0].Close(), x.Close())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkHostBuffer(b *testing.B) {
	for _, size := range []int{4, 1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d := openCPU(b, 1).Devices()[0]
			a := Array{Shape: Shape{Uint8, []int{size}}, Data: make([]byte, size)}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				buffer, err := d.Put(a)
				if err == nil {
					err = buffer.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	buffer := put(b, openCPU(b, 1).Devices()[0], Float32, []float32{1})
	dst := make([]byte, 4)
	b.ReportAllocs()
	for b.Loop() {
		if err := buffer.ToHost(dst); err != nil {
			b.Fatal(err)
		}
	}
}
