package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// failing records that a test failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Errorf(string, ...any) { f.failed = true }
func (f *failing) FailNow()              { panic(f) }

func TestEqual(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	fails := func(got string) (failed bool) {
		f := &failing{TB: t}
		defer func() {
			if r := recover(); r != nil && r != any(f) {
				panic(r)
			}
			failed = f.failed
		}()
		Equal(f, file, got)
		return f.failed
	}
	require.True(t, fails("a"), "the file is missing")
	*write = true
	require.False(t, fails("a"))
	*write = false
	require.False(t, fails("a"))
	require.True(t, fails("b"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a", string(text), "written only on demand")
}
