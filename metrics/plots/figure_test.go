package plots_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// A file appears whole or not at all, and its name says what it is.
func TestSave(t *testing.T) {
	h, dir := learned(3, "accuracy", -1), t.TempDir()
	for _, name := range []string{"a.svg", "a.PNG", "a.html"} {
		require.NoError(t, plots.History(h).Save(filepath.Join(dir, name)))
	}
	file, err := os.Open(filepath.Join(dir, "a.PNG"))
	require.NoError(t, err)
	defer file.Close()
	shown, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, 1840, shown.Bounds().Dx(), "two panels in a row, at two pixels")
	page, err := os.ReadFile(filepath.Join(dir, "a.html"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(page), "<svg "), "a drawing a panel")
	read(t, string(page[bytes.Index(page, []byte("<body>")):bytes.Index(page, []byte("</html>"))]))
	selfContained(t, string(page))
	require.Contains(t, string(page), "<th>loss</th><td class=\"number\">0.6667</td><td class=\"number\">0.6667</td><td class=\"number\">2</td>")

	require.ErrorContains(t, plots.History(h).Save(filepath.Join(dir, "a.jpg")), "ends in .svg, .png or .html")
	require.ErrorContains(t, plots.History(h).Save(filepath.Join(dir, "none", "a.svg")), "no such file")
	require.Error(t, plots.History(nil).Save(filepath.Join(dir, "b.svg")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}
