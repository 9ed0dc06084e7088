package dist

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// S40: rank 0 listens where LAZO_COORDINATOR says if that is an address of this host, so a job of one host is on
// loopback only. Before, it listened on all interfaces.
func TestS40_listensAt(t *testing.T) {
	for coordinator, want := range map[string]string{
		"127.0.0.1:7070":     "127.0.0.1:7070",
		"[::1]:7070":         "[::1]:7070",
		"localhost:7070":     "localhost:7070",
		"train-0.train:7070": ":7070",
		"203.0.113.9:7070":   ":7070", // of documentation, so of no host
		"[2001:db8::9]:7070": ":7070",
	} {
		require.Equal(t, want, listenAt(coordinator))
	}
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			at := net.JoinHostPort(n.IP.String(), "7070")
			require.Equal(t, at, listenAt(at))
		}
	}
}
