package xla_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

var pair = shapes.Make(dtypes.Float32, 2)

// plusOne is x + 1, in place.
func plusOne(g *graph.Graph) xla.Built {
	return xla.Built{Outputs: []*graph.Node{graph.OnePlus(graph.Parameter(g, "x", pair))}, InPlace: map[int]int{0: 0}}
}

// F17: a program's first run copies what it overwrites; later runs write in place. Without the copy, a first run that
// fails would sometimes lose its inputs.
func TestF17_theFirstRunCopies(t *testing.T) {
	r := plugintest.Uncached(t)
	p, err := r.Compile("plus one", plusOne)
	require.NoError(t, err)
	x, err := r.BufferFromFlatData(0, []float32{1, 2}, pair)
	require.NoError(t, err)
	inputs := []compute.Buffer{x}
	var at []unsafe.Pointer
	for range 3 {
		where, err := xla.Address(inputs[0])
		require.NoError(t, err)
		at = append(at, where)
		_, err = p.Run(inputs, nil)
		require.NoError(t, err)
	}
	require.NotEqual(t, at[0], at[1], "the first run")
	require.Equal(t, at[1], at[2], "the second run")
	require.NoError(t, errors.Join(p.Close(), inputs[0].Finalize()))
	t.Log("F17: the first run wrote elsewhere, the second in place")
}

// F17: an invalid graph is a typed error with operation, shapes and line, reported once, and leaves nothing.
func TestF17_buildErrors(t *testing.T) {
	r := plugintest.Uncached(t)
	before := pjrt.Live()
	for _, row := range []struct {
		name      string
		build     func(g *graph.Graph) xla.Built
		is        error
		operation string
		operands  int
		message   string
	}{
		{"an operation", func(g *graph.Graph) xla.Built {
			graph.Add(graph.Parameter(g, "x", pair), graph.Parameter(g, "y", shapes.Make(dtypes.Float32, 3)))
			return xla.Built{}
		}, xla.ErrInvalidArgument, "Add", 2, "dimensions [2] and [3]"},
		{"a size that overflows", func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.BroadcastToDims(graph.Parameter(g, "x", shapes.Make(dtypes.Float32)), 1<<40, 1<<22)}}
		}, xla.ErrInvalidArgument, "BroadcastInDim", 1, "is larger than"},
		{"GoMLX's own check", func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.Reshape(graph.Parameter(g, "x", pair), 3)}}
		}, nil, "", 0, "Reshape: total requested size 3 (dimensions=[3]) doesnt match original size 2"},
		{"a panic", func(*graph.Graph) xla.Built { panic("own words") }, nil, "", 0, "own words"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := r.Compile("wrong", row.build)
			var typed *xla.Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, row.operation, typed.Operation)
			require.Len(t, typed.Operands, row.operands)
			require.Regexp(t, `^xla/fault_test\.go:\d+$`, typed.Where)
			require.Regexp(t, `^xla: compile wrong: xla/fault_test\.go:\d+: [^\n]*(\n  hint: [^\n]*)?$`, err.Error())
			require.NotRegexp(t, `fault_test\.go.*fault_test\.go`, err.Error(), "the line is said once")
			require.ErrorContains(t, err, row.message)
			for _, kind := range []error{xla.ErrInvalidArgument, xla.ErrOutOfMemory, xla.ErrUnimplemented, xla.ErrClosed} {
				require.Equal(t, kind == row.is, errors.Is(err, kind), "%v", kind)
			}
		})
	}
	require.Equal(t, before, pjrt.Live())
}
