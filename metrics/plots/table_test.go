package plots_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// Pages have a table: texts as they are, columns of numbers aligned.
func TestTable(t *testing.T) {
	f := plots.Table("Rows", []string{"name", "size", "text"}, []string{"<a>", "1.5", "x & y"}, []string{"b", "", "2"})
	var page bytes.Buffer
	require.NoError(t, f.HTML(&page))
	require.Contains(t, page.String(), `<th>name</th><th class="number">size</th><th>text</th>`)
	require.Contains(t, page.String(), `<th>&lt;a&gt;</th><td class="number">1.5</td><td>x &amp; y</td>`)
	require.ErrorContains(t, f.SVG(io.Discard), "it is a table: write HTML")
	require.ErrorContains(t, f.PNG(io.Discard), "it is a table: write HTML")
	require.ErrorContains(t, plots.Table("Rows", []string{"a"}).Err(), "no rows")
	require.ErrorContains(t, plots.Table("Rows", []string{"a"}, []string{"1", "2"}).Err(), "row 0 has 2 cells below a head of 1")
}
