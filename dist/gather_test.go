package dist

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// F59: a process that knows the secret and is of another job or an earlier start is refused with the reason, and the
// job continues.
func TestF59_refuses(t *testing.T) {
	h, me, gathered := opened(t, 2)
	for says, change := range map[string]func(*hello){
		`of job "b", this is job "unguessable-6f1c2a"`: func(h *hello) { h.Job = "b" },
		`of attempt "0", this is attempt "41"`:         func(h *hello) { h.Attempt = "0" },
		"has 3 ranks, rank 0 that it has 2":            func(h *hello) { h.Size = 3 },
		"rank 0 of 2 is not a rank that connects":      func(h *hello) { h.Rank = 0 },
		"rank 2 of 2 is not a rank that connects":      func(h *hello) { h.Rank = 2 },
	} {
		_, err := come(t, h, me, 1, change)
		require.ErrorContains(t, err, says)
	}
	// It joins, and all ranks get an error, because it runs something else.
	_, err := come(t, h, me, 1, func(h *hello) { h.Program = []string{"program", "v8"} })
	require.ErrorContains(t, err, `rank 1 (host host-of-rank-0) runs another program than rank 0 (host host-of-rank-0): "v8" against "v7"`)
	require.ErrorContains(t, <-gathered, "another program")
}

// S56: of two processes with one rank, the second is refused, and the job waits for the missing rank.
func TestHub_aRankThatIsTakenTwice(t *testing.T) {
	h, me, gathered := opened(t, 3)
	joined := make(chan error, 3)
	join := func(rank int) { _, err := come(t, h, me, rank, nil); joined <- err }
	go join(1)
	go join(1)
	require.ErrorContains(t, <-joined, "refuses this process (rank 1): rank 1 is already connected: host host-of-rank-0, pid 1; this is host host-of-rank-0, pid 1")
	join(2)
	require.NoError(t, <-joined)
	require.NoError(t, <-joined)
	require.NoError(t, <-gathered)
}

// Rank 0 reports a refusal: the refused process may write to another host's log.
func TestHub_reportsARefusal(t *testing.T) {
	j := newJob(0, 2)
	me := hello{Job: "j", Attempt: "41", Size: 2, Host: "a", PID: 1}
	h, err := newHub(j, "127.0.0.1:0", me, secret)
	require.NoError(t, err)
	j.hub = h
	ctx, cancel := context.WithCancel(t.Context())
	gathered := make(chan error, 1)
	go func() { gathered <- h.gather(ctx) }()
	_, err = come(t, h, me, 1, func(h *hello) { h.Attempt = "40" })
	require.ErrorContains(t, err, `of attempt "40"`)
	cancel()
	require.ErrorContains(t, <-gathered, `(ranks 1); rank 1 (host a, pid 1) was refused: it is of attempt "40", this is attempt "41"`)
}
