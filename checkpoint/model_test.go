package checkpoint_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// sequences is the number of runs of TestF42.
var sequences = 200

// one is a checkpoint as the model knows it.
type one struct {
	step, again, version int
	// torn is damage that the manifest shows, flipped damage in the tensors alone.
	torn, flipped bool
}

func (o one) name() string {
	if o.again == 1 {
		return dir(checkpoint.Step(o.step))
	}
	return fmt.Sprint(dir(checkpoint.Step(o.step)), ".", o.again)
}

func (o one) compare(p one) int {
	return cmp.Or(cmp.Compare(o.step, p.step), cmp.Compare(o.again, p.again))
}

func (o one) right() bool { return !o.torn && !o.flipped }

// model is a folder without files, in the simplest form.
type model struct {
	t       *rapid.T
	mem     *vfs.Mem
	rule    *failing
	folder  *checkpoint.Folder
	options checkpoint.Options
	// last and best are numbers of a Retention; 0 is none of it.
	last, best int
	all        []one // by step, again
	version    int
}

func (m *model) open() {
	m.rule = &failing{}
	m.options = checkpoint.Options{Overwrite: m.options.Overwrite}
	if m.last > 0 {
		m.options.Keep = append(m.options.Keep, checkpoint.Retention{Last: m.last})
	}
	if m.best > 0 {
		m.options.Keep = append(m.options.Keep, checkpoint.Retention{Best: m.best, Metric: "loss"})
	}
	m.folder = openMem(m.t, vfs.Hook(m.mem, m.rule.before), m.options)
}

func (m *model) reopen(t *rapid.T) {
	m.last, m.best = rapid.IntRange(0, 3).Draw(t, "last"), rapid.IntRange(0, 2).Draw(t, "best")
	m.options.Overwrite = rapid.Bool().Draw(t, "overwrite")
	require.NoError(t, m.folder.Close())
	m.open()
}

// save applies a save to the model and returns the expected error.
func (m *model) save(step int) error {
	taken := slices.DeleteFunc(slices.Clone(m.all), func(o one) bool { return o.step != step })
	if !m.options.Overwrite && slices.ContainsFunc(taken, one.right) {
		return fs.ErrExist
	}
	o := one{step: step, again: 1, version: m.version}
	if n := len(taken); n > 0 {
		o.again = taken[n-1].again + 1
	}
	m.all = append(m.all, o)
	slices.SortFunc(m.all, one.compare)
	return m.prune(&o)
}

var errNoneRight = errors.New("no checkpoint is intact")

func (m *model) prune(saved *one) error {
	if m.last == 0 && m.best == 0 && !m.options.Overwrite {
		return nil
	}
	newest := map[int]one{} // of those that seem right
	for _, o := range m.all {
		if !o.torn {
			newest[o.step] = o
		}
	}
	stay := map[one]bool{}
	var list []one
	for _, o := range m.all {
		if newest[o.step] == o && !o.torn {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if m.last == 0 && m.best == 0 {
		for _, o := range list {
			stay[o] = true
		}
	}
	for i, o := range list {
		if i >= len(list)-m.last {
			stay[o] = true
		}
		better := 0 // the loss is 1/(version+1)
		for j, other := range list {
			if other.version > o.version || other.version == o.version && j < i {
				better++
			}
		}
		if better < m.best {
			stay[o] = true
		}
	}
	stay[list[len(list)-1]] = true
	if saved != nil {
		stay[*saved] = true
	} else {
		found := false
		for i := len(list) - 1; i >= 0 && !found; i-- {
			stay[list[i]] = true
			found = list[i].right()
		}
		if !found {
			return errNoneRight
		}
	}
	m.all = slices.DeleteFunc(m.all, func(o one) bool {
		if o.torn || stay[o] {
			return false
		}
		top := newest[o.step]
		return top == o || !stay[top] || top.right()
	})
	return nil
}

func (m *model) doSave(t *rapid.T) {
	m.version++
	step := rapid.IntRange(0, 12).Draw(t, "step")
	err := m.folder.Save(context.Background(), checkpoint.Step(step), content(m.version))
	require.ErrorIs(t, err, m.save(step))
}

// saveThatFails must leave the earlier content, or have saved.
func (m *model) saveThatFails(t *rapid.T) {
	m.version++
	step := rapid.IntRange(0, 12).Draw(t, "step")
	older := leftovers(t, m.mem) // of an earlier failed pruning: this fault may hit their removal
	*m.rule = failing{n: rapid.IntRange(1, 60).Draw(t, "call"), err: syscall.EIO, armed: true}
	err := m.folder.Save(context.Background(), checkpoint.Step(step), content(m.version))
	m.rule.armed = false
	switch {
	case errors.Is(err, checkpoint.ErrNotPruned):
		require.ErrorIs(t, err, syscall.EIO)
		before := slices.Clone(m.all)
		require.NoError(t, m.save(step))
		m.settle(t, before)
	case len(m.rule.hit) == 0 || errors.Is(err, fs.ErrExist), err == nil && m.rule.hit[0].Op == vfs.OpClose:
		// That a file could not be closed does not matter once it is known to be damaged.
		require.ErrorIs(t, err, m.save(step))
	default:
		require.ErrorIs(t, err, syscall.EIO)
		require.Subset(t, older, leftovers(t, m.mem))
	}
}

// settle accepts the result of a save that the model has completed: each checkpoint is one of before or of after, all
// of after exist except maybe the saved one, and if that is missing, all of before exist.
func (m *model) settle(t *rapid.T, before []one) {
	there := m.there(t)
	var now []one
	saved := false
	for _, list := range [][]one{before, m.all} {
		for _, o := range list {
			if slices.Contains(there, o.name()) && !slices.Contains(now, o) {
				now = append(now, o)
				saved = saved || o.version == m.version
			}
		}
	}
	require.Len(t, now, len(there), "%v", there)
	for _, o := range m.all {
		require.True(t, o.version == m.version || slices.Contains(now, o), "%v is gone", o)
	}
	for _, o := range before {
		require.True(t, saved || slices.Contains(now, o), "%v is gone, and nothing came for it", o)
	}
	slices.SortFunc(now, one.compare)
	m.all = now
}

// crash loses the power in the middle of a save, or between.
func (m *model) crash(t *rapid.T) {
	m.version++
	step := rapid.IntRange(0, 12).Draw(t, "step")
	k := rapid.IntRange(0, 40).Draw(t, "call")
	chance := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "chance")
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	var crashed *vfs.Mem
	n := 0
	hook := func(vfs.Call) error {
		if n++; n == k {
			crashed = m.mem.Crash(chance, random)
		}
		return nil
	}
	before := slices.Clone(m.all)
	require.NoError(t, m.folder.Close())
	f := openMem(t, vfs.Hook(m.mem, hook), m.options)
	n = 0
	require.ErrorIs(t, f.Save(context.Background(), checkpoint.Step(step), content(m.version)), m.save(step))
	require.NoError(t, f.Close())
	if crashed == nil {
		crashed = m.mem.Crash(chance, random)
		before = m.all
	}
	m.mem = crashed
	m.open()
	require.Empty(t, leftovers(t, m.mem))
	m.settle(t, before)
}

func (m *model) there(t *rapid.T) []string {
	names, err := m.mem.ReadDir(".")
	require.NoError(t, err)
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "step-") })
}

func (m *model) damage(t *rapid.T) {
	if len(m.all) == 0 {
		t.Skip()
	}
	o := &m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, "which")]
	file := rapid.SampledFrom([]string{"COMMIT", "manifest.json", "state.safetensors"}).Draw(t, "file")
	if !o.right() {
		t.Skip() // two flips may undo each other
	}
	path := o.name() + "/" + file
	text := read(t, m.mem, path)
	switch rapid.SampledFrom([]string{"flip", "cut", "remove"}).Draw(t, "how") {
	case "flip":
		text[rapid.IntRange(0, len(text)-1).Draw(t, "byte")] ^= 1
		write(t, m.mem, path, text)
		o.flipped, o.torn = file == "state.safetensors", file != "state.safetensors"
	case "cut":
		write(t, m.mem, path, text[:rapid.IntRange(0, len(text)-1).Draw(t, "length")])
		o.torn = true
	case "remove":
		require.NoError(t, m.mem.Remove(path))
		require.NoError(t, m.mem.SyncDir(o.name()))
		o.torn = true
	}
}

func (m *model) doPrune(t *rapid.T) {
	if err := m.prune(nil); err == nil {
		require.NoError(t, m.folder.Prune(context.Background()))
	} else {
		require.ErrorContains(t, m.folder.Prune(context.Background()), err.Error())
	}
}

// check compares all that can be asked.
func (m *model) check(t *rapid.T) {
	var names []string
	top := map[int]one{}  // the newest saving of a step
	good := map[int]one{} // the newest that is right
	for _, o := range m.all {
		names = append(names, o.name())
		if top[o.step] = o; o.right() {
			good[o.step] = o
		}
	}
	require.ElementsMatch(t, names, m.there(t))
	newest, found := -1, false
	for step := range 13 {
		_, any := top[step]
		c, err := m.folder.Load(context.Background(), checkpoint.Step(step))
		verified := m.folder.Verify(context.Background(), checkpoint.Step(step))
		var damaged *checkpoint.DamagedError
		switch o, ok := good[step]; {
		case ok:
			require.NoError(t, err)
			require.Equal(t, o.version, version(t, c))
			newest, found = step, true
		case any:
			require.ErrorAs(t, err, &damaged)
		default:
			require.ErrorIs(t, err, checkpoint.ErrNoStep)
			require.ErrorIs(t, verified, checkpoint.ErrNoStep)
		}
		if any {
			require.Equal(t, top[step].right(), verified == nil)
		}
	}
	c, err := m.folder.Newest(context.Background())
	switch {
	case found:
		require.NoError(t, err)
		require.EqualValues(t, newest, c.Step)
	case len(m.all) > 0:
		require.NotErrorIs(t, err, checkpoint.ErrNone)
		require.Error(t, err)
	default:
		require.ErrorIs(t, err, checkpoint.ErrNone)
	}
}

//lazo:norace
func TestF42_againstAModel(t *testing.T) {
	runs, actions := 0, 0
	for runs < sequences {
		rapid.Check(t, func(t *rapid.T) {
			runs++
			m := &model{t: t, mem: &vfs.Mem{}}
			m.open()
			counted := func(do func(*rapid.T)) func(*rapid.T) {
				return func(t *rapid.T) { actions++; do(t) }
			}
			t.Repeat(map[string]func(*rapid.T){
				"save": counted(m.doSave), "save again": counted(m.doSave), "save that fails": counted(m.saveThatFails),
				"crash": counted(m.crash), "damage": counted(m.damage), "prune": counted(m.doPrune), "reopen": counted(m.reopen),
				"": m.check,
			})
			require.NoError(t, m.folder.Close())
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("F42: %d sequences of %d actions: 0 differences", runs, actions)
}
