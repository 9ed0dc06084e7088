package parquet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestMemory(t *testing.T) {
	m := &memory{100, 100}
	require.NoError(t, m.take(10))
	require.ErrorIs(t, m.take(91), data.ErrLimit)
	require.ErrorIs(t, m.take(-1), data.ErrLimit)
	require.ErrorContains(t, m.take(91), "reading takes more than 100 bytes (set Format.Limit, or stream smaller batches)")
	require.EqualValues(t, 90, m.left, "what was refused is not charged")

	b, err := m.buffer(nil, 40)
	require.NoError(t, err)
	require.Len(t, b, 40)
	again, err := m.buffer(b, 30)
	require.NoError(t, err)
	require.Same(t, &b[0], &again[0])
	require.EqualValues(t, 50, m.left)
	b, err = m.buffer(b, 45) // 60, by half more, are too many
	require.NoError(t, err)
	require.Equal(t, 45, cap(b))
	_, err = m.buffer(b, 46)
	require.ErrorIs(t, err, data.ErrLimit)
}

func TestGrown(t *testing.T) {
	m, taken := &memory{100, 100}, int64(0)
	s, err := grown(m, []int64(nil), 4, 8, &taken)
	require.NoError(t, err)
	s = append(s, 1, 2, 3)
	require.Equal(t, []int64{32, 68}, []int64{taken, m.left})
	s, err = grown(m, s, 1, 8, &taken)
	require.NoError(t, err)
	require.EqualValues(t, 32, taken, "there was room")
	s, err = grown(m, s, 2, 8, &taken)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, s)
	require.EqualValues(t, 32+40, taken, "the old ones and the new ones")
	_, err = grown(m, s, 1<<62, 8, &taken)
	require.ErrorIs(t, err, data.ErrLimit)
}
