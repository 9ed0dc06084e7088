package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// Every number that says a size or a limit may be anything: it is an error that names it, or it works. None ends the
// process, hangs, or takes the memory that it speaks of.
func TestR29_anySizeIsAnErrorOrWorks(t *testing.T) {
	datatest.Sizes(t, map[string]func(n int) error{
		"Format.MaxRow": func(n int) error { return datatest.Second(Read(strings.NewReader("a\n1\n"), Format{MaxRow: n})) },
		"Format.Limit":  func(n int) error { return datatest.Second(Read(strings.NewReader("a\n1\n"), Format{Limit: int64(n)})) },
		"Stream":        func(n int) error { return datatest.First(Stream(t.TempDir()+"/none", Format{}, n)) },
	})
}

// A file of a spreadsheet begins with a byte order mark, and may quote its header.
func TestR29_csvWithAByteOrderMark(t *testing.T) {
	for _, file := range []string{"a,b\n1,2\n", "\ufeffa,b\n1,2\n", "\ufeff\"a\",\"b\"\n1,2\n", "\ufeff\"a\",b\r\n\"1\",2\r\n"} {
		set, err := Read(strings.NewReader(file), Format{Fields: []Field{{Name: "x", Columns: []string{"a", "b"}}}})
		require.NoError(t, err, fmt.Sprintf("%q", file))
		require.Equal(t, []float32{1, 2}, set.Fields()[0].Array.Flat)
	}
	set, err := Read(strings.NewReader("\ufeff\"1\",2\n"), Format{NoHeader: true})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2}, set.Fields()[0].Array.Flat)
}
