package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
)

// A failed deletion is reported.
func TestStore_thatDeletesNothing(t *testing.T) {
	s := &troubled{}
	f := openTroubled(t, s)
	require.NoError(t, f.Save(t.Context(), 1, content(1)))
	s.delete = errStore
	err := f.Save(t.Context(), 2, content(2))
	require.ErrorIs(t, err, checkpoint.ErrNotPruned)
	require.ErrorIs(t, err, errStore)
	s.delete = nil
}

// Each call fails: not made, or made with its answer lost. After it the process may die.
func TestF05_eachCallOfAStoreFails(t *testing.T) {
	before := &memstore.Memory{}
	save(t, openStore(t, before, checkpoint.Options{}), 1, 2)
	tried, failed, unpruned, passed, states := 0, 0, 0, 0, 0
	for _, made := range []bool{false, true} {
		for _, on := range []bool{false, true} {
			for k := 1; ; k++ {
				p := &crashing{t: t, store: before.Clone(), acknowledged: 2, going: 3, options: checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}}}
				armed, calls, hit := false, 0, ""
				rule := func(c memstore.Call) error {
					if !armed {
						return nil
					}
					if hit != "" && !on {
						return p.look(c)
					}
					if calls++; calls == k || on && calls > k {
						hit = fmt.Sprintf("%v, call %d, made %v, on %v", c, k, made, on)
						return fmt.Errorf("%s: %w", c.Op, syscall.ECONNRESET)
					}
					return nil
				}
				faulty := &memstore.Faulty{Store: p.store}
				if made {
					faulty.After = rule
				} else {
					faulty.Before = rule
				}
				f := openStore(t, faulty, p.options)
				armed = true
				err := f.Save(t.Context(), 3, content(3))
				armed = false
				if hit == "" {
					require.NoError(t, err)
					break
				}
				tried++
				switch {
				case err == nil:
					passed++
				case errors.Is(err, checkpoint.ErrNotPruned):
					unpruned++
				default:
					failed++
					if !on { // that which takes back works
						require.Equal(t, []checkpoint.Step{1, 2}, steps(t, f), hit)
						require.Empty(t, incomplete(t, p.store), hit)
					}
				}
				if err == nil || errors.Is(err, checkpoint.ErrNotPruned) {
					p.acknowledged = 3
				}
				if err != nil {
					require.ErrorIs(t, err, syscall.ECONNRESET, hit)
				}
				p.die(hit)
				require.NoError(t, f.Save(t.Context(), 4, content(4)), hit)
				require.Empty(t, incomplete(t, p.store), hit)
				states += p.states
			}
		}
	}
	require.Positive(t, failed)
	require.Positive(t, unpruned)
	t.Logf("F05: %d calls of a store failed: %d saves refused, %d saved but not pruned, %d saved all the same; then %d deaths: 0 errors lost, 0 acknowledged steps lost",
		tried, failed, unpruned, passed, states)
}

var errStore = errors.New("the service is away")

// troubled is a store in memory with trouble.
type troubled struct {
	memstore.Memory
	garbled string // the end of keys whose objects lose a bit on their way
	delete  error
}

func (s *troubled) Put(ctx context.Context, key string, write func(io.Writer) error) error {
	return s.Memory.Put(ctx, key, func(w io.Writer) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if s.garbled != "" && strings.HasSuffix(key, s.garbled) {
			b.Bytes()[b.Len()-1] ^= 1
		}
		_, err := w.Write(b.Bytes())
		return err
	})
}

func (s *troubled) Delete(ctx context.Context, key string) error {
	if s.delete != nil {
		return s.delete
	}
	return s.Memory.Delete(ctx, key)
}

func openTroubled(t *testing.T, s *troubled) *checkpoint.Folder {
	options := checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{{Last: 1}}, ReadBack: true}
	f, err := checkpoint.OpenStore(t.Context(), s, "store", options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}
