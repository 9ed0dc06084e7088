package records

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBacklog_writesInOrderAfterAFailure(t *testing.T) {
	var written []int
	full := errors.New("the disk is full")
	fails := false
	write := func(n int) error {
		if fails {
			return full
		}
		written = append(written, n)
		return nil
	}
	b := Backlog[int]{Path: "log.csv", Clone: func(n int) (int, int) { return n, 1 }}
	b.Add(1, 10, write)
	fails = true
	b.Add(2, 20, write)
	b.Add(5, 50, write)
	require.EqualError(t, b.Err(), "log.csv: 2 records of steps 2 to 5 are missing: the disk is full")
	require.ErrorIs(t, b.Retry(write), full)
	fails = false
	b.Add(6, 60, write)
	require.Equal(t, []int{10, 20, 50, 60}, written)
	require.NoError(t, b.Err())
}

func TestBacklog_losesAboveItsRoom(t *testing.T) {
	full := errors.New("the disk is full")
	b := Backlog[int]{Path: "log.csv", Clone: func(n int) (int, int) { return n, Room/2 + 1 }}
	for step := range int64(4) {
		b.Add(step, int(step), func(int) error { return full })
	}
	require.EqualError(t, b.Err(), "log.csv: 4 records of steps 0 to 3 are missing: the disk is full")
	var written []int
	require.NoError(t, b.Retry(func(n int) error { written = append(written, n); return nil }))
	require.Equal(t, []int{0}, written, "the first is kept however large")
	require.EqualError(t, b.Err(), "log.csv: 3 records of steps 1 to 3 are missing: the disk is full", "for good")
}
