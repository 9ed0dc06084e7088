package pjrt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAsync(t *testing.T) {
	const n, products = 512, 40
	var body strings.Builder
	for i := range products {
		fmt.Fprintf(&body, "%%%d = stablehlo.dot_general %%%d, %%0, contracting_dims = [1] x [0] : (tensor<%dx%dxf32>, tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n",
			i+1, i, n, n, n, n, n, n)
	}
	c := openCPU(t, 1)
	e := compile(t, c, fmt.Sprintf(`module @long {
func.func @main(%%x: tensor<%[1]dx%[1]dxf32>) -> tensor<%[1]dx%[1]dxf32> {
%%0 = stablehlo.add %%x, %%x : tensor<%[1]dx%[1]dxf32>
%[2]sreturn %%%[3]d : tensor<%[1]dx%[1]dxf32>
}}`, n, body.String(), products), CompileOptions{})
	one := make([]float32, n*n) // half the unit matrix: its double is idempotent
	for i := range n {
		one[i*n+i] = 0.5
	}
	b := put(t, c.Devices()[0], Float32, one, n, n)
	x, err := e.Execute([][]*Buffer{{b}}, ExecuteOptions{})
	require.NoError(t, err)
	ready, err := x.Done[0].Ready()
	require.NoError(t, err)
	assert.False(t, ready, "Execute waited for the program")
	called := make(chan error, 1)
	require.NoError(t, x.Done[0].OnReady(func(err error) { called <- err }))
	got := make([]float32, n*n)
	copied, err := x.Outputs[0][0].StartToHost(Bytes(got))
	require.NoError(t, err)
	ready, err = copied.Ready()
	require.NoError(t, err)
	assert.False(t, ready, "StartToHost waited for the program")
	require.NoError(t, x.Await())
	require.NoError(t, <-called)
	ready, err = x.Done[0].Ready()
	require.NoError(t, err)
	assert.True(t, ready)
	require.NoError(t, firstError(copied.Await(), copied.Close()))
	assert.Equal(t, []float32{1, 0, 0, 1}, []float32{got[0], got[1], got[n], got[n+1]})
	event, err := x.Outputs[0][0].Ready()
	require.NoError(t, err)
	require.NoError(t, firstError(event.Await(), event.Close(), x.Close()))
}
