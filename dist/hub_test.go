package dist

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What goes to all ranks is encoded once, and all links hand on the same bytes: of a welcome, which names all ranks,
// rank 0 of 4,096 would otherwise write a gigabyte of JSON.
func TestTell_encodesOnce(t *testing.T) {
	links := make([]*link, 5) // none for rank 0
	for r := range links[1:] {
		links[1+r] = &link{}
		links[1+r].more.L = &links[1+r].mu
	}
	tell(links, message{Kind: kindWelcome, Welcome: &welcome{second, make([]peer, len(links))}})
	first := links[1].queue[0]
	var m message
	require.NoError(t, json.Unmarshal(first[4:], &m))
	require.Len(t, m.Welcome.Peers, len(links))
	for _, l := range links[2:] {
		require.Same(t, &first[0], &l.queue[0][0])
	}
}

// An agreement is complete when all ranks have joined, also right after another one.
func TestAnswer_whenAllHaveCome(t *testing.T) {
	h := &hub{calls: make([]*message, 3), own: make(chan message, 1)}
	for round := range int64(3) {
		for r := range int64(3) {
			require.Empty(t, h.own)
			h.answer(int(r), message{Call: "Agree of 1 words", Words: []int64{10*round + r}})
		}
		require.Equal(t, []int64{10*round + 2}, (<-h.own).Words)
	}
}

// A rank that waits for rank 0 for the five minutes of StartWithin tries some 300 times, and at first often.
func TestPause(t *testing.T) {
	var sum time.Duration
	tries := 0
	for ; sum < defaultStart; tries++ {
		if sum += pause(tries); tries == 4 {
			require.Less(t, sum, 1500*time.Millisecond)
		}
		require.LessOrEqual(t, pause(tries), time.Second)
		require.GreaterOrEqual(t, pause(tries+1), pause(tries))
	}
	require.InDelta(t, 300, tries, 10)
}

// A panic of a program that leaves by defer ends the process at once: Close does not wait.
func TestClose_whileItPanics(t *testing.T) {
	j := &Job{size: 2} // it could reach no other rank
	for name, leave := range map[string]func() error{"Close": j.Close, "Leave": func() error { return j.Leave(nil) }} {
		t.Run(name, func(t *testing.T) {
			require.PanicsWithValue(t, "of the program", func() {
				defer func() { require.NoError(t, leave()) }()
				panic("of the program")
			})
		})
	}
	require.False(t, panicking())
}
