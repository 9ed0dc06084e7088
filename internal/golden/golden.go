// Package golden compares tests' output with files. `go test PACKAGE -run TEST -write-golden` rewrites them.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var write = flag.Bool("write-golden", false, "write the golden files again")

func Equal(t testing.TB, file, got string) {
	t.Helper()
	if *write {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "to write %s again: go test -run '^%s$' -write-golden", file, t.Name())
}
