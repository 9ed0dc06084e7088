package dist

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that was stopped for the deadline says nothing of the others, who have given it up.
func TestWakefulness(t *testing.T) {
	var w wakefulness
	now := time.Now()
	w.look(now)
	w.look(now.Add(second))
	require.False(t, w.givenUp(now.Add(2*second), 10*second))
	require.True(t, w.givenUp(now.Add(9*second), 10*second), "it has not looked since")
	require.Equal(t, now, w.excuse(now))
	w.look(now.Add(9 * second))
	require.True(t, w.givenUp(now.Add(9*second), 10*second))
	w.look(now.Add(9500 * time.Millisecond))
	require.False(t, w.givenUp(now.Add(10500*time.Millisecond), 10*second))
	w.look(now.Add(12 * second))
	require.False(t, w.givenUp(now.Add(12*second), 10*second), "not for so long")
	require.Equal(t, now.Add(10500*time.Millisecond), w.excuse(now), "both naps")
	require.Equal(t, now.Add(12*second), w.excuse(now.Add(10*second)), "the rest of one")
	require.Equal(t, now.Add(12*second), w.excuse(now.Add(12*second)))
	for i := range 2 * mostNaps {
		w.look(now.Add(time.Duration(100+2*i) * second))
	}
	require.Len(t, w.naps, mostNaps)
}

// A process that is stopped as soon as it has joined knows it when it wakes.
func TestWatch_stoppedAtOnce(t *testing.T) {
	h := &hub{j: three(), over: true, links: make([]*link, 3), views: make([]view, 3)}
	h.watch()
	here, there := net.Pipe()
	s := &spoke{j: h.j, left: true, link: newLink(here, time.Minute, func(error) {})}
	s.watch()
	later := time.Now().Add(11 * second)
	s.mu.Lock()
	require.True(t, s.awake.givenUp(later, 10*second))
	s.mu.Unlock()
	h.mu.Lock()
	require.True(t, h.awake.givenUp(later, 10*second))
	h.mu.Unlock()
	require.NoError(t, there.Close())
}
