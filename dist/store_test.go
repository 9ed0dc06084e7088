package dist_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/storetest"
	"github.com/lazo-ml/lazo/internal/ranks"
)

func TestStore(t *testing.T) {
	t.Parallel()
	for name, by := range joins {
		t.Run(name, func(t *testing.T) {
			if !ranks.Over(t, 3, by) {
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			storetest.Run(t, job, job)
			require.NoError(t, job.Close())
		})
	}
}

func TestStore_ofOneProcess(t *testing.T) {
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	storetest.Run(t, job, job)
	_, err = job.TryGet(t.Context(), "once/0")
	require.NoError(t, err, "the job's one store")
	require.ErrorContains(t, job.Put(t.Context(), "long", make([]byte, 64<<20+1)), "67108865 bytes")
}

// What waits when its rank leaves gets an error, and so does what comes later.
func TestStore_ofAJobThatWasLeft(t *testing.T) {
	t.Parallel()
	if !ranks.Over(t, 2, joins["control"]) {
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, job.Name())
	require.Equal(t, "0", job.Attempt())
	require.NoError(t, job.Put(t.Context(), "there "+string(rune('0'+job.Rank())), nil))
	got := make(chan error, 1)
	go func() {
		_, err := job.Get(context.Background(), "never")
		got <- err
	}()
	require.NoError(t, job.Close())
	require.ErrorContains(t, <-got, "the job is closed")
	_, err = job.TryGet(t.Context(), "there 0")
	require.ErrorContains(t, err, "the job is closed")
	require.False(t, errors.Is(err, dist.ErrNoKey))
}
