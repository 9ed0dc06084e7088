package xla

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByteText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 10239: "10239 bytes", 10240: "10.0 KiB", 3 << 20: "3.0 MiB", 1 << 43: "8.0 TiB", 1 << 62: "4096.0 PiB",
	} {
		require.Equal(t, want, byteText(n))
	}
}
