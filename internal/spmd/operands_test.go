package spmd

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Independent sums of one kind are one call; all other exchanges have separate calls, those without dependencies first.
func TestRewrite_joins(t *testing.T) {
	module := made(func(m *module, c *computation) int64 {
		add, most, wide := m.by("add", f32), m.by("maximum", f32), m.by("add", f64)
		a, b, d := c.parameter(0, array(f32, 4)), c.parameter(1, array(f32, 2, 3)), c.parameter(2, array(f64, 2))
		first := c.reduce("first", a, add)
		again := c.reduce("again", first.id, add)
		return c.tuple(again.id, c.reduce("most", a, most).id, c.reduce("second", b, add).id, c.reduce("wide", d, wide).id,
			c.reduce("pairs", a, add, []int64{0, 1}, []int64{2, 3}).id, c.reduce("others", b, add, []int64{0, 2}, []int64{1, 3}).id,
			c.reduce("third", b, add, []int64{0, 1, 2, 3}).id)
	})
	rewritten, found, err := Rewrite(module, 4)
	require.NoError(t, err)
	Line(t, rewritten)
	var joined [][]string
	for _, call := range found.Calls {
		var names []string
		for _, name := range call.Instructions {
			names = append(names, name[:bytes.IndexByte([]byte(name), '.')])
		}
		joined = append(joined, names)
	}
	require.Equal(t, [][]string{{"first", "second", "third"}, {"most"}, {"wide"}, {"pairs"}, {"others"}, {"again"}}, joined)
	require.Equal(t, 8, found.Exchanges)
	require.Equal(t, int64(16+24+24), found.Calls[0].Bytes)
	require.Equal(t, 2, found.Calls[3].GroupSize)
}
