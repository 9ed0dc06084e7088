//go:build unix

package probe

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAddressLimit(t *testing.T) {
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_AS, &old))
	limited := old
	limited.Cur = min(1<<46, old.Max) // far above the use of a test
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &limited))
	got := addressLimit()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &old))
	require.EqualValues(t, limited.Cur, got)
}
