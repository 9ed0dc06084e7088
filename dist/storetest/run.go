package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
)

// Run tests an empty store. All ranks of the job call it, each with its own client.
func Run(t *testing.T, job *dist.Job, store dist.Store) {
	for _, row := range []struct {
		name string
		test func(*testing.T, *dist.Job, dist.Store)
	}{
		{"all ranks get what one rank puts", put},
		{"a key is put once", once},
		{"Get waits", waits},
		{"Get ends with its context", ends},
		{"keys are any bytes", keys},
		{"values are of many lengths", lengths},
		{"many wait at once", many},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			t.Cleanup(func() { together(t, job, "end of "+row.name) })
			row.test(t, job, within{store, ctx})
		})
	}
}

type within struct {
	dist.Store
	ctx context.Context
}

func together(t *testing.T, job *dist.Job, what string) {
	t.Helper()
	if t.Failed() {
		job.Fail(fmt.Errorf("%s failed", t.Name()))
	}
	require.NoError(t, job.Barrier(what))
}

func want(t *testing.T, store dist.Store, key string, value []byte) {
	t.Helper()
	for name, get := range map[string]func(context.Context, string) ([]byte, error){"Get": store.Get, "TryGet": store.TryGet} {
		got, err := get(store.(within).ctx, key)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(value, got), "%s of %q: %d bytes, expected %d", name, key, len(got), len(value))
	}
}

func put(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	for putter := range job.Size() {
		key, value := fmt.Sprint("put/", putter), fmt.Append(nil, "of rank ", putter)
		_, err := store.TryGet(ctx, key)
		require.ErrorIs(t, err, dist.ErrNoKey)
		together(t, job, "nothing was put")
		if job.Rank() == putter {
			require.NoError(t, store.Put(ctx, key, value))
			value[0] = 'x' // the store must have a copy
		}
		together(t, job, "one has put")
		value[0] = 'o'
		want(t, store, key, value)
		got, err := store.Get(ctx, key)
		require.NoError(t, err)
		got[0] = 'x'
		want(t, store, key, value)
	}
}

func once(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	for i := range 20 {
		key := fmt.Sprint("once/", i)
		err := store.Put(ctx, key, fmt.Append(nil, job.Rank()))
		if err != nil {
			require.ErrorIs(t, err, dist.ErrKeyExists)
			require.Contains(t, err.Error(), key)
		}
		all, gatherErr := job.AllGather(fmt.Append(nil, err == nil))
		require.NoError(t, gatherErr)
		var winners []int
		for rank, won := range all {
			if string(won) == "true" {
				winners = append(winners, rank)
			}
		}
		require.Len(t, winners, 1, "of %d ranks that put one key at once", job.Size())
		want(t, store, key, fmt.Append(nil, winners[0]))
		require.ErrorIs(t, store.Put(ctx, key, fmt.Append(nil, winners[0])), dist.ErrKeyExists, "the same value again")
	}
}

func waits(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	const key = "waits"
	type result struct {
		value []byte
		err   error
	}
	got := make(chan result, 1)
	go func() {
		value, err := store.Get(ctx, key)
		got <- result{value, err}
	}()
	together(t, job, "all wait")
	select {
	case r := <-got:
		t.Fatalf("Get of a key that no rank has put returned %q, %v", r.value, r.err)
	case <-time.After(100 * time.Millisecond):
	}
	together(t, job, "all have waited")
	if job.Rank() == job.Size()-1 {
		require.NoError(t, store.Put(ctx, key, []byte("come")))
	}
	r := <-got
	require.NoError(t, r.err)
	require.Equal(t, "come", string(r.value))
}

func ends(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	const key = "ends"
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := store.Get(soon, key)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, err.Error(), key)
	require.Less(t, time.Since(start), 10*time.Second)

	cause := errors.New("the user's own reason")
	given, giveUp := context.WithCancelCause(ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := store.Get(given, key)
		failed <- err
	}()
	giveUp(cause)
	require.ErrorIs(t, <-failed, cause)
	require.ErrorIs(t, store.Put(given, key, nil), cause)
	_, err = store.TryGet(given, key)
	require.ErrorIs(t, err, cause)

	together(t, job, "no rank waits")
	_, err = store.TryGet(ctx, key)
	require.ErrorIs(t, err, dist.ErrNoKey)
	together(t, job, "no rank has put")
	if job.Rank() == 0 {
		require.NoError(t, store.Put(ctx, key, []byte("late")))
	}
	value, err := store.Get(ctx, key)
	require.NoError(t, err)
	require.Equal(t, "late", string(value))
}

func keys(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	list := []string{
		"keys", "keys/", "keys/a", "/keys", "keys//a", "keys/../a", "\x00", "keys\x00", "keys\xff", "keys\xfe", "keys\n", " ", "äöü", "\U0010ffff",
		strings.Repeat("k", 4000), "global_topology/cuda", "local_topology/cuda/1", "local_topology/cuda/10",
	}
	for i, key := range list {
		if i%job.Size() == job.Rank() {
			require.NoError(t, store.Put(ctx, key, fmt.Append(nil, "value ", i)), "%q", key)
		}
	}
	for i, key := range list {
		value, err := store.Get(ctx, key)
		require.NoError(t, err, "%q", key)
		require.Equal(t, fmt.Sprint("value ", i), string(value), "%q", key)
	}
	require.Error(t, store.Put(ctx, "", nil), "a key without a byte")
	_, err := store.Get(ctx, "")
	require.Error(t, err)
	_, err = store.TryGet(ctx, "")
	require.Error(t, err)
	require.NotErrorIs(t, err, dist.ErrNoKey)
}

func lengths(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	for _, n := range []int{0, 1, 128, 4095, 100_000, 1 << 20} {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		value := make([]byte, n)
		for i := range value {
			value[i] = byte(random.Uint32())
		}
		key := fmt.Sprint("lengths/", n)
		if job.Rank() == job.Size()/2 {
			require.NoError(t, store.Put(ctx, key, value))
		}
		got, err := store.Get(ctx, key)
		require.NoError(t, err)
		require.True(t, bytes.Equal(value, got), "%d bytes, expected %d", len(got), n)
		want(t, store, key, value)
	}
}

func many(t *testing.T, job *dist.Job, store dist.Store) {
	ctx := store.(within).ctx
	const waiting = 200
	var group sync.WaitGroup
	errs := make(chan error, 2*waiting)
	for i := range waiting {
		group.Go(func() {
			value, err := store.Get(ctx, "many")
			if err == nil && string(value) != "one for all" {
				err = fmt.Errorf("got %q", value)
			}
			errs <- err
		})
		group.Go(func() {
			key := func(rank int) string { return fmt.Sprint("many/", rank%job.Size(), "/", i) }
			err := store.Put(ctx, key(job.Rank()), fmt.Append(nil, i))
			if err == nil {
				var value []byte
				if value, err = store.Get(ctx, key(job.Rank()+1)); err == nil && string(value) != fmt.Sprint(i) {
					err = fmt.Errorf("got %q for %d", value, i)
				}
			}
			errs <- err
		})
	}
	together(t, job, "all are at work")
	if job.Rank() == 0 {
		require.NoError(t, store.Put(ctx, "many", []byte("one for all")))
	}
	group.Wait()
	for range 2 * waiting {
		require.NoError(t, <-errs)
	}
}
