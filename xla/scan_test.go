package xla_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// next is a step of a generation: a table's next token and its confidence. The step's noise is added to the table's
// row.
func next(scan xla.Scan) func(g *graph.Graph) xla.Built {
	return func(g *graph.Graph) xla.Built {
		table := graph.Parameter(g, "table", shapes.Make(dtypes.Float32, 5, 5))
		token := graph.Parameter(g, "token", shapes.Make(dtypes.Int32))
		noise := graph.Parameter(g, "noise", shapes.Make(dtypes.Float32, 5))
		row := graph.Add(graph.Squeeze(graph.Gather(table, graph.Reshape(token, 1, 1)), 0), noise)
		chosen := graph.ArgMax(row, 0, dtypes.Int32)
		return xla.Built{Outputs: []*graph.Node{chosen, graph.Identity(chosen), graph.ReduceAllMax(row)}, Scan: scan}
	}
}

// A scan returns the results of as many sequential runs of the graph.
func TestScan(t *testing.T) {
	const length = 12
	r := plugintest.Uncached(t)
	put := func(flat any, dims ...int) compute.Buffer {
		dtype := dtypes.Float32
		if _, ok := flat.([]int32); ok {
			dtype = dtypes.Int32
		}
		b, err := r.BufferFromFlatData(0, flat, shapes.Make(dtype, dims...))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Finalize()) })
		return b
	}
	fetch := func(b compute.Buffer, flat any) {
		require.NoError(t, b.ToFlatData(flat))
		require.NoError(t, b.Finalize())
	}
	table, noise := make([]float32, 25), make([]float32, 5*length)
	for i := range table {
		table[i] = float32(i*7%11) / 11
	}
	for i := range noise {
		noise[i] = float32(i*5%13) / 13
	}
	tableBuffer := put(table, 5, 5)

	step, err := r.Compile("next", next(xla.Scan{}))
	require.NoError(t, err)
	defer func() { require.NoError(t, step.Close()) }()
	token, tokens, scores := []int32{2}, []int32{}, []float32{}
	for i := range length {
		outputs, err := step.Run([]compute.Buffer{tableBuffer, put(append([]int32{}, token...)), put(noise[5*i:5*i+5], 5)}, nil)
		require.NoError(t, err)
		score := []float32{0}
		fetch(outputs[0], token)
		require.NoError(t, outputs[1].Finalize())
		fetch(outputs[2], score)
		tokens, scores = append(tokens, token[0]), append(scores, score[0])
	}

	scan, err := r.Compile("scan", next(xla.Scan{Length: length, Carry: map[int]int{0: 1}, Each: []int{2}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, scan.Close()) }()
	outputs, err := scan.Run([]compute.Buffer{tableBuffer, put([]int32{2}), put(noise, length, 5)}, nil)
	require.NoError(t, err)
	last, gotTokens, gotScores := []int32{0}, make([]int32, length), make([]float32, length)
	fetch(outputs[0], last)
	fetch(outputs[1], gotTokens)
	fetch(outputs[2], gotScores)
	require.Equal(t, tokens, gotTokens)
	require.Equal(t, scores, gotScores)
	require.Equal(t, tokens[length-1], last[0])
	t.Logf("%d tokens in one run: %v", length, gotTokens)
}

func TestScan_refuses(t *testing.T) {
	for _, row := range []struct {
		plugin string
		scan   xla.Scan
		block  int
		err    string
	}{
		{xla.CPU, xla.Scan{Length: 3, Carry: map[int]int{2: 1}}, 0, "output 2, (Float32), becomes parameter 1, (Int32); expected the same shape"},
		{xla.CPU, xla.Scan{Length: 3, Carry: map[int]int{0: 7}}, 0, "output 0 becomes parameter 7, but there are 3 outputs and 3 parameters"},
		{xla.CPU, xla.Scan{Length: -1, Carry: map[int]int{0: 1}}, 0, "length -1, expected from 1 to 1073741824"},
		{xla.CPU, xla.Scan{Length: 3, Carry: map[int]int{0: 1}}, 4, "a scan of 3 times cannot be run in blocks of 4"},
		{xla.CPU, xla.Scan{Length: 3, Carry: map[int]int{0: 1}}, 2, "a scan of 3 times cannot be run in blocks of 2"},
		{xla.Go, xla.Scan{Length: 3, Carry: map[int]int{0: 1}}, 0, "operation not implemented"},
	} {
		t.Run(fmt.Sprint(row.plugin, row.scan), func(t *testing.T) {
			r, err := xla.Open(t.Context(), row.plugin)
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			_, err = r.Compile("scan", func(g *graph.Graph) xla.Built {
				b := next(row.scan)(g)
				b.Block = row.block
				return b
			})
			require.ErrorContains(t, err, row.err)
		})
	}
}
