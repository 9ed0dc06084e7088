package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

type buffer struct {
	compute.Buffer
	bytes string
}

// devices is a strategy that counts what is freed and fetched.
type devices struct {
	strategies.Strategy
	freed, fetched int
	err            error
}

func (d *devices) Free(buffers ...compute.Buffer) error { d.freed += len(buffers); return d.err }

func (d *devices) FetchInto(b compute.Buffer, memory []byte) error {
	d.fetched++
	copy(memory, b.(*buffer).bytes)
	return d.err
}

// The last of a value's holders frees it, but not while the store has it.
func TestPin_isFreedOnce(t *testing.T) {
	on := &devices{}
	var s Store
	s.Init(on)
	s.values = []value{{buffer: &buffer{}}}
	one, two := s.Pin(0), s.Pin(0)
	require.Same(t, one, two)
	require.NoError(t, one.Release())
	require.NoError(t, two.Release())
	require.Zero(t, on.freed, "the store has it")
	s.Pin(0)
	s.Pin(0)
	require.Nil(t, s.swap(0, &buffer{}), "its holders free it")
	require.NoError(t, one.Release())
	require.Zero(t, on.freed)
	require.NoError(t, one.Release())
	require.Equal(t, 1, on.freed)
	require.NotSame(t, one, s.Pin(0), "another value")
}

func TestPin_write(t *testing.T) {
	on := &devices{}
	p := &Pin{on: on}
	var out bytes.Buffer
	var spare []byte
	require.NoError(t, p.Write(&out, &buffer{bytes: "abcd"}, 4, &spare))
	require.NoError(t, p.Write(&out, &buffer{}, 0, &spare))
	require.Equal(t, "abcd", out.String())
	require.Equal(t, 1, on.fetched, "nothing is fetched of no bytes")
	on.err = errors.New("the device is gone")
	require.ErrorIs(t, p.Write(&out, &buffer{}, 4, &spare), on.err)
	require.Equal(t, "abcd", out.String())
}

func TestFree_ofAClosedRuntime(t *testing.T) {
	require.NoError(t, Free(&devices{err: xla.ErrClosed}, &buffer{}))
	broken := errors.New("broken")
	require.ErrorIs(t, Free(&devices{err: broken}, &buffer{}), broken)
}
