package checkpoint_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// clones is the number of random crashes of each operation, in addition to the two that keep all and nothing.
var clones = 1

// power is a run on a machine that may lose its power before each operation that changes the disk.
type power struct {
	t       *testing.T
	mem     *vfs.Mem
	options checkpoint.Options
	random  *rand.Rand
	// acknowledged is the last version that Save reported as safe, going is the one being saved.
	acknowledged, going int
	states, operations  int
}

func (p *power) before(c vfs.Call) error {
	if !c.Op.Changes() {
		return nil
	}
	p.operations++
	p.lose(0)
	p.lose(1)
	for range clones {
		p.lose(p.random.Float64())
	}
	return nil
}

// lose crashes, loads the newest checkpoint and continues training.
func (p *power) lose(chance float64) {
	p.states++
	m := p.mem.Crash(chance, p.random)
	f := openMem(p.t, m, p.options)
	found := 0
	if c, err := f.Newest(p.t.Context()); p.acknowledged > 0 || err == nil {
		require.NoError(p.t, err, "operation %d, chance %v", p.operations, chance)
		found = version(p.t, c)
	} else {
		require.ErrorIs(p.t, err, checkpoint.ErrNone)
	}
	require.GreaterOrEqual(p.t, found, p.acknowledged, "operation %d, chance %v", p.operations, chance)
	require.LessOrEqual(p.t, found, max(p.going, p.acknowledged))
	require.Empty(p.t, leftovers(p.t, m))
	list, err := f.List(p.t.Context())
	require.NoError(p.t, err)
	for _, i := range list {
		require.NoError(p.t, f.Verify(p.t.Context(), i.Step), "operation %d, chance %v: what can be seen is complete", p.operations, chance)
	}
	next := checkpoint.Step(1000)
	require.NoError(p.t, f.Save(p.t.Context(), next, content(1000)))
	c, err := openMem(p.t, m.Crash(0, nil), checkpoint.Options{}).Newest(p.t.Context())
	require.NoError(p.t, err)
	require.Equal(p.t, 1000, version(p.t, c))
}

//lazo:norace
func TestF02_powerIsLost(t *testing.T) {
	states, operations := 0, 0
	for _, c := range []struct {
		name    string
		options checkpoint.Options
		steps   []checkpoint.Step
	}{
		{"last 1", checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}}, []checkpoint.Step{1, 2, 3}},
		{"last 2 and best 1", checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2, Best: 1, Metric: "loss", Mode: loop.Highest}}}, []checkpoint.Step{1, 2, 3, 4}},
		{"all", checkpoint.Options{}, []checkpoint.Step{1, 2}},
		{"overwriting", checkpoint.Options{Overwrite: true}, []checkpoint.Step{1, 1, 1}},
		{"last 1, not read back", checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}}, []checkpoint.Step{1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &power{t: t, mem: &vfs.Mem{}, options: c.options, random: rand.New(rand.NewPCG(1, 2))}
			p.options.Log = quiet
			f := openMem(t, vfs.Hook(p.mem, p.before), p.options)
			for i, step := range c.steps {
				p.going = i + 1
				require.NoError(t, f.Save(t.Context(), step, content(p.going)))
				p.acknowledged = p.going
				p.lose(0)
			}
			require.NoError(t, f.Close())
			states, operations = states+p.states, operations+p.operations
		})
	}
	t.Logf("F02: power lost in %d states of %d operations: 0 acknowledged steps lost", states, operations)
}

// A call fails, and the power is lost while Save clears up or the next one is made.
//
//lazo:norace
func TestF02_powerIsLostAfterAnError(t *testing.T) {
	before := saved(t, 1, 2)
	states, errs := 0, 0
	run := func(k int, done bool) (hit []vfs.Call) {
		rule := &failing{n: k, err: syscall.EIO}
		p := &power{t: t, mem: before.Crash(1, nil), random: rand.New(rand.NewPCG(uint64(k), 2)), acknowledged: 2, going: 3}
		p.options = checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{{Last: 2}}}
		f := openMem(t, vfs.Hook(p.mem, func(c vfs.Call) error {
			if err := rule.before(c); err != nil {
				if done && c.Op == vfs.OpSyncDir {
					require.NoError(t, p.mem.SyncDir(c.Name))
				}
				return err
			}
			if c.Op.Changes() && len(rule.hit) > 0 {
				p.operations++
				for range clones {
					p.lose([]float64{0, 0.5, 1}[p.random.IntN(3)])
				}
			}
			return nil
		}), p.options)
		rule.armed = true
		err := f.Save(t.Context(), 3, content(3))
		if rule.armed = false; len(rule.hit) == 0 {
			return nil
		}
		require.ErrorIs(t, err, syscall.EIO)
		p.going = 4
		require.NoError(t, f.Save(t.Context(), 4, content(4)))
		states, errs = states+p.states, errs+1
		require.NoError(t, f.Close())
		return rule.hit
	}
	for k := 1; ; k++ {
		hit := run(k, false)
		if len(hit) == 0 {
			break
		}
		if hit[0].Op == vfs.OpSyncDir {
			run(k, true) // a sync that fails may have been made
		}
	}
	t.Logf("F02: power lost in %d states after %d errors: 0 acknowledged steps lost, nothing incomplete to be seen", states, errs)
}

// skipping leaves out one kind of sync and reports success.
type skipping struct {
	vfs.FS
	op   vfs.Op
	name string
}

func (s skipping) SyncDir(name string) error {
	if s.op == vfs.OpSyncDir && (name == ".") == (s.name == "the folder") {
		return nil
	}
	return s.FS.SyncDir(name)
}

func (s skipping) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	if err == nil && s.op == vfs.OpSync && name[len(name)-len(s.name):] == s.name {
		f = unsynced{f}
	}
	return f, err
}

type unsynced struct{ vfs.File }

func (unsynced) Sync() error { return nil }

// A protocol without one of its syncs must fail, else TestF02 shows nothing.
func TestF02_aMissingSyncIsFound(t *testing.T) {
	for _, c := range []struct {
		op   vfs.Op
		name string
	}{
		{vfs.OpSync, "state.safetensors"}, {vfs.OpSync, "manifest.json"}, {vfs.OpSync, "COMMIT"},
		{vfs.OpSyncDir, "the checkpoint"}, {vfs.OpSyncDir, "the folder"},
	} {
		t.Run(fmt.Sprint(c.op, " ", c.name), func(t *testing.T) {
			m := &vfs.Mem{}
			f := openMem(t, skipping{m, c.op, c.name}, checkpoint.Options{})
			save(t, f, 1)
			c, err := openMem(t, m.Crash(0, nil), checkpoint.Options{}).Newest(t.Context())
			require.Error(t, err, "%v", c)
		})
	}
}
