package store

import (
	"errors"
	"runtime"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

func (d *devices) Fetch(compute.Buffer) (*Tensor, error) {
	d.fetched++
	return tensors.FromValue([]float32{1, 2}), d.err
}

func TestRemote_isReadOnceAndFreed(t *testing.T) {
	on := &devices{}
	var s Store
	s.Init(on)
	r := &Remote{}
	require.NoError(t, s.Hold(r, &buffer{}))
	require.Zero(t, on.fetched)
	for range 2 {
		flat, err := r.Flat()
		require.NoError(t, err)
		require.Equal(t, []float32{1, 2}, flat)
		v, err := r.Tensor()
		require.NoError(t, err)
		require.Equal(t, []float32{1, 2}, v.Value())
	}
	require.Equal(t, []int{1, 1}, []int{on.fetched, on.freed})

	on.err = errors.New("the device is gone")
	broken := &Remote{}
	require.NoError(t, s.Hold(broken, &buffer{}))
	for range 2 {
		_, err := broken.Flat()
		require.ErrorIs(t, err, on.err)
		require.ErrorContains(t, err, "managed: read logs: ")
	}
	require.Equal(t, []int{2, 2}, []int{on.fetched, on.freed})
}

// The device has a bounded number of unread arrays. Those whose logs were dropped are freed unread.
func TestUnread_isBounded(t *testing.T) {
	on := &devices{}
	var s Store
	s.Init(on)
	kept := make([]*Remote, 10)
	for i := range 2*maxUnread - 1 {
		r := &Remote{}
		if i < len(kept) {
			kept[i] = r
		}
		require.NoError(t, s.Hold(r, &buffer{}))
	}
	require.Zero(t, on.freed)
	runtime.GC()
	last := &Remote{}
	require.NoError(t, s.Hold(last, &buffer{}))
	require.Equal(t, maxUnread, on.freed)
	require.LessOrEqual(t, on.fetched, maxUnread)
	require.GreaterOrEqual(t, on.fetched, len(kept))
	for _, r := range kept {
		flat, err := r.Flat()
		require.NoError(t, err)
		require.NotNil(t, flat)
	}
	require.NoError(t, s.unread.drain(0))
	require.Equal(t, 2*maxUnread, on.freed)
	runtime.KeepAlive(last)
}
