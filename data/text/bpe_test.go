package text

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t testing.TB, name string) string {
	t.Helper()
	out, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(out)
}
