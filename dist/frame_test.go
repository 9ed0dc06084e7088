package dist

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// S56: rank 0 reads no hello above its limit. Otherwise it would answer that the hello is of another job.
func TestHub_aLongHello(t *testing.T) {
	h, me, _ := opened(t, 2)
	me.Rank, me.Job = 1, strings.Repeat("x", mostHello)
	c, err := net.Dial("tcp", h.listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, prove(c, secret))
	_ = write(c, message{Kind: kindHello, Hello: &me}, time.Minute) // rank 0 may close the connection meanwhile
	answer, _ := io.ReadAll(c)
	require.Empty(t, answer)
}
