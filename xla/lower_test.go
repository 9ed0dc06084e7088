package xla_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// On each backend, Lower returns the text that Compile compiles; a program compiled from that text is the same.
func TestLower(t *testing.T) {
	r := plugintest.Uncached(t)
	p, err := r.Compile("product", product(4))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	m, err := r.Lower("product", product(4))
	require.NoError(t, err)
	require.Equal(t, p.StableHLO(), m.Text())
	require.Contains(t, m.Text(), "tf.aliasing_output = 0")
	require.Equal(t, "a", m.Parameters[0].Name)
	plain, err := xla.Open(t.Context(), xla.Go)
	require.NoError(t, err)
	other, err := plain.Lower("product", product(4))
	require.NoError(t, err)
	require.Equal(t, m.Text(), other.Text())
	require.Empty(t, plain.StableHLOVersion())
	require.Regexp(t, `^\d+\.\d+\.\d+$`, r.StableHLOVersion())
	require.NoError(t, plain.Close())
	_, err = plain.Lower("product", product(4))
	require.ErrorIs(t, err, xla.ErrClosed)
	_, err = r.Lower("wrong", func(g *graph.Graph) xla.Built {
		return xla.Built{Outputs: []*graph.Node{graph.Dot(graph.ScalarZero(g, dtypes.Float32), graph.Iota(g, shapes.Make(dtypes.Int32, 2), 0)).Product()}}
	})
	require.ErrorContains(t, err, "xla: lower wrong: ")

	again, err := r.CompileStableHLO(t.Context(), "product", m.Text(), xla.Built{})
	require.NoError(t, err)
	want, err := p.Cost()
	require.NoError(t, err)
	got, err := again.Cost()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, again.Close())
	for _, row := range []struct {
		name  string
		built xla.Built
		text  string
		want  string
	}{
		{"no program", xla.Built{}, "module", "xla: compile it: "},
		{"another input", xla.Built{InPlace: map[int]int{0: 0}}, m.Text(), "writes output 0 over input 1"},
		{"no such input", xla.Built{Host: []int{2}}, m.Text(), "input 2 from the host: the program has 2"},
	} {
		_, err := r.CompileStableHLO(t.Context(), "it", row.text, row.built)
		require.ErrorContains(t, err, row.want, row.name)
	}
}
