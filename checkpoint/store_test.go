package checkpoint_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
	"github.com/lazo-ml/lazo/loop"
)

func openStore(t T, s checkpoint.Store, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	if options.Log == nil {
		options.Log = quiet
	}
	f, err := checkpoint.OpenStore(context.Background(), s, "store", options)
	require.NoError(t, err)
	return f
}

// incomplete are the keys that belong to no step with a COMMIT.
func incomplete(t T, s checkpoint.Store) []string {
	t.Helper()
	keys, err := s.Keys(context.Background())
	require.NoError(t, err)
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(keys, key[:len(key)-len(file(key))]+"COMMIT") })
}

func file(key string) string {
	for i := range key {
		if key[i] == '/' {
			return key[i+1:]
		}
	}
	return key
}

func TestStoreHasTheFilesOfAFolder(t *testing.T) {
	s := &memstore.Memory{}
	f := openStore(t, s, checkpoint.Options{Overwrite: true})
	save(t, f, 7, 7, 9)
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	slices.Sort(keys)
	require.Equal(t, []string{
		"step-000000000007.2/COMMIT", "step-000000000007.2/manifest.json", "step-000000000007.2/state.safetensors",
		"step-000000000009/COMMIT", "step-000000000009/manifest.json", "step-000000000009/state.safetensors",
	}, keys)
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Save(t.Context(), 10, content(10)), checkpoint.ErrClosed)
	reader := openStore(t, s, checkpoint.Options{ReadOnly: true})
	require.ErrorIs(t, reader.Save(t.Context(), 10, content(10)), checkpoint.ErrReadOnly)
	c, err := reader.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 9, version(t, c))
	_, err = checkpoint.OpenStore(t.Context(), nil, "nowhere", checkpoint.Options{})
	require.EqualError(t, err, "checkpoint: open nowhere: no store given")
	_, err = checkpoint.OpenStore(t.Context(), s, "store", checkpoint.Options{Keep: []checkpoint.Retention{{}}})
	require.ErrorContains(t, err, "keep 1 of 1")
}

// crashing is a process that may die before and after each call that changes the store.
type crashing struct {
	t                   *testing.T
	store               *memstore.Memory
	options             checkpoint.Options
	acknowledged, going int
	calls, states       int
}

func (p *crashing) look(c memstore.Call) error {
	if c.Op == memstore.OpPut || c.Op == memstore.OpDelete {
		p.calls++
		p.die(fmt.Sprint(c))
	}
	return nil
}

// die checks a copy of the store as another process would find it after a crash here.
func (p *crashing) die(where string) {
	p.states++
	s := p.store.Clone()
	f := openStore(p.t, s, p.options)
	require.Empty(p.t, incomplete(p.t, s), where)
	found := 0
	c, err := f.Newest(p.t.Context())
	if p.acknowledged > 0 || err == nil {
		require.NoError(p.t, err, where)
		found = version(p.t, c)
	} else {
		require.ErrorIs(p.t, err, checkpoint.ErrNone, where)
	}
	require.GreaterOrEqual(p.t, found, p.acknowledged, where)
	require.LessOrEqual(p.t, found, max(p.going, p.acknowledged), where)
	for _, step := range steps(p.t, f) {
		require.NoError(p.t, f.Verify(p.t.Context(), step), where)
	}
	list, err := f.List(p.t.Context())
	require.NoError(p.t, err)
	for _, i := range list {
		require.NoError(p.t, i.Err, "%s: what can be seen is complete", where)
	}
	require.NoError(p.t, f.Save(p.t.Context(), 1000, content(1000)), where)
	c, err = openStore(p.t, s.Clone(), checkpoint.Options{ReadOnly: true}).Newest(p.t.Context())
	require.NoError(p.t, err)
	require.Equal(p.t, 1000, version(p.t, c))
}

var storeRuns = []struct {
	name    string
	options checkpoint.Options
	steps   []checkpoint.Step
}{
	{"last 1", checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}}, []checkpoint.Step{1, 2, 3}},
	{"last 2 and best 1", checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2, Best: 1, Metric: "loss", Mode: loop.Highest}}}, []checkpoint.Step{1, 2, 3, 4, 5}},
	{"all", checkpoint.Options{ReadBack: true}, []checkpoint.Step{1, 2}},
	{"overwriting", checkpoint.Options{Overwrite: true}, []checkpoint.Step{1, 1, 1}},
	{"not read back", checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}}, []checkpoint.Step{1, 2, 3}},
}

func TestStoreLosesBits(t *testing.T) {
	s := &memstore.Memory{}
	f := openStore(t, s, checkpoint.Options{})
	save(t, f, 1, 2)
	require.NoError(t, s.Put(t.Context(), "step-000000000002/manifest.json", putText("{}")))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, version(t, c))
	require.NoError(t, s.Delete(t.Context(), "step-000000000001/state.safetensors"))
	_, err = f.Newest(t.Context())
	var damaged *checkpoint.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.ErrorIs(t, f.Verify(t.Context(), 1), fs.ErrNotExist)
}

// A step can be read while another process removes the older ones.
func TestStoreIsReadWhileAnotherSaves(t *testing.T) {
	s := &memstore.Memory{}
	options := checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}}
	writer := openStore(t, s, options)
	save(t, writer, 1)
	next := checkpoint.Step(2)
	busy := false
	reader := openStore(t, &memstore.Faulty{Store: s, Before: func(c memstore.Call) error {
		if c.Op != memstore.OpKeys && !busy && next < 20 {
			busy = true // only the first call of each
			save(t, writer, next)
			next++
		} else if c.Op == memstore.OpKeys {
			busy = false
		}
		return nil
	}}, checkpoint.Options{ReadOnly: true})
	c, err := reader.Newest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 19, c.Step, "each time it was gone, the reader looked again")
}

func putText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestF02_aStoreWhoseProcessDies(t *testing.T) {
	states, calls := 0, 0
	for _, c := range storeRuns {
		t.Run(c.name, func(t *testing.T) {
			p := &crashing{t: t, store: &memstore.Memory{}, options: c.options}
			f := openStore(t, &memstore.Faulty{Store: p.store, Before: p.look, After: p.look}, p.options)
			for i, step := range c.steps {
				p.going = i + 1
				require.NoError(t, f.Save(t.Context(), step, content(p.going)))
				p.acknowledged = p.going
				p.die("between")
			}
			states, calls = states+p.states, calls+p.calls
		})
	}
	t.Logf("F02: a process died in %d states before and after %d calls of a store: 0 acknowledged steps lost, nothing incomplete to be seen", states, calls/2)
}
