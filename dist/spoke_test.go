package dist

import (
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A rank that hears nothing of rank 0 reports it to rank 0 as its last message: a link may return in one direction
// first.
func TestSpoke_reportsSilence(t *testing.T) {
	defer func() { exit = os.Exit }()
	synctest.Test(t, func(t *testing.T) {
		codes := make(chan int, 1)
		exit = func(c int) { codes <- c }
		here, there := net.Pipe()
		j := three()
		j.rank = 2
		s := &spoke{j: j, link: newLink(here, time.Minute, func(error) {})}
		go s.silent(11 * second)
		m, err := read(there, mostMessage)
		require.NoError(t, err)
		require.Equal(t, kindFail, m.Kind)
		require.Equal(t, 2, m.Failure.Rank)
		require.Contains(t, m.Failure.Text, "rank 2 (host h2, pid 102) has received nothing from rank 0 for 11s: the link between them was down. It was at step 0")
		require.Equal(t, ExitLost, <-codes)
	})
}
