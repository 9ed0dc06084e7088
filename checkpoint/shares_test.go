package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/memstore"
	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// grid is the number of parts of each tensor of content along each axis.
var grid = map[string][]int{"/rows": {4}, "/both": {2, 2}, "/last": {1, 4}, "/held by rank 0 [x]": {1, 2}}

// whole are the tensors of a version that a save of several processes has, before they are cut.
func whole(version int) []checkpoint.Tensor {
	numbers := func(n int) (data []byte) {
		for i := range n {
			data = append(data, byte(i+version))
		}
		return data
	}
	return []checkpoint.Tensor{
		{Name: "/rows", DType: safetensors.F32, Dims: []int{8}, Data: numbers(32)},
		{Name: "/both", DType: safetensors.BF16, Dims: []int{4, 6}, Data: numbers(48)},
		{Name: "/last", DType: safetensors.U8, Dims: []int{3, 8, 2}, Data: numbers(48)},
		{Name: "/held by rank 0 [x]", DType: safetensors.F64, Dims: []int{1, 2}, Data: numbers(16)},
		{Name: "/whole", DType: safetensors.F32, Dims: []int{2}, Data: numbers(8)},
	}
}

// cutOut are the bytes of a box.
func cutOut(t checkpoint.Tensor, start, dims []int) (data []byte) {
	size := t.DType.Bits() / 8
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(dims) {
			data = append(data, t.Data[at*size:(at+1)*size]...)
			return
		}
		for i := range dims[axis] {
			walk(axis+1, at*t.Dims[axis]+start[axis]+i)
		}
	}
	walk(0, 0)
	return data
}

// share returns one process's content of a version. The processes hold the parts of sharded tensors in turn; of one
// tensor rank 0 holds all.
func share(version, rank, n int, at shares.Slot) checkpoint.Content {
	c := checkpoint.Content{Share: shares.Share{Rank: rank, Of: n, At: at}}
	if rank == 0 {
		c.Sections = map[string]any{"version": version}
	}
	for _, t := range whole(version) {
		cuts := grid[t.Name]
		if cuts == nil {
			if rank == 0 {
				c.Tensors = append(c.Tensors, t)
			}
			continue
		}
		all := 1
		part := append([]int(nil), t.Dims...)
		for i, k := range cuts {
			part[i] /= k
			all *= k
		}
		parts := []shares.Part{}
		for p := range all {
			start := make([]int, len(part))
			for i, left := len(cuts)-1, p; i >= 0; i-- {
				start[i] = left % cuts[i] * part[i]
				left /= cuts[i]
			}
			owner := p % n
			if strings.HasPrefix(t.Name, "/held") {
				owner = 0
			}
			if owner == rank {
				data := cutOut(t, start, part)
				one := shares.Part{Start: start, Dims: part, Data: data}
				if p%2 > 0 {
					one.Data, one.Write = nil, func(w io.Writer) error { _, err := w.Write(data); return err }
				}
				parts = append(parts, one)
			}
		}
		t.Data, t.Parts = nil, parts
		c.Tensors = append(c.Tensors, t)
	}
	return c
}

// saveShares has n processes save a step together; open gives each its folder.
func saveShares(step checkpoint.Step, n int, open func(rank int) *checkpoint.Folder) []error {
	folders, errs := make([]*checkpoint.Folder, n), make([]error, n)
	for rank := range n {
		folders[rank] = open(rank)
		defer folders[rank].Close()
	}
	at, err := folders[0].Begin(context.Background(), step)
	if err != nil {
		return []error{err}
	}
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { errs[rank] = folders[rank].Save(context.Background(), step, share(int(step), rank, n, at)) })
	}
	all.Wait()
	return errs
}

// is checks that a checkpoint is a version, wholly.
func is(t T, c *checkpoint.Checkpoint, version int) {
	t.Helper()
	var got int
	require.NoError(t, c.Section("version", &got))
	require.Equal(t, version, got)
	want := whole(version)
	require.Len(t, c.Tensors, len(want))
	bytesOf := int64(0)
	for _, w := range want {
		got, ok := c.Tensor(w.Name)
		require.True(t, ok, w.Name)
		require.Equal(t, w, got)
		bytesOf += int64(len(w.Data))
	}
	require.Equal(t, bytesOf, c.Bytes)
	for i := range c.Tensors[1:] {
		require.LessOrEqual(t, c.Tensors[i+1].DType, c.Tensors[i].DType, "the widest first")
	}
}

// sharedDisk has steps that three processes have saved together, after a power loss.
func sharedDisk(t T, steps ...checkpoint.Step) *vfs.Mem {
	t.Helper()
	m := &vfs.Mem{}
	for _, step := range steps {
		for _, err := range saveShares(step, 3, func(rank int) *checkpoint.Folder { return openMem(t, m, checkpoint.Options{ReadOnly: rank > 0}) }) {
			require.NoError(t, err)
		}
	}
	return m.Crash(0, nil)
}

// If any call fails in one of the processes, the step does not exist unless it is complete, the one before does, and
// nothing else is left when the folder is opened again.
func TestShares_eachCallFails(t *testing.T) {
	for rank := range 3 {
		failures := 0
		for n := int64(1); ; n++ {
			disk := sharedDisk(t, 1)
			calls := int64(0)
			failing := vfs.Hook(disk, func(c vfs.Call) error {
				if c.Op == vfs.OpLock || c.Op == vfs.OpClose {
					return nil
				}
				if calls++; calls >= n {
					return syscall.EIO
				}
				return nil
			})
			open := func(r int) *checkpoint.Folder {
				if r == rank {
					f, err := checkpoint.OpenFS(failing, "folder", checkpoint.Options{ReadOnly: r > 0, Log: quiet})
					if err != nil {
						return nil
					}
					return f
				}
				return openMem(t, disk, checkpoint.Options{ReadOnly: r > 0})
			}
			failed := false
			synctest.Test(t, func(t *testing.T) { // rank 0 may have to wait till the end of its patience
				if f := open(rank); f == nil {
					failed = true
					return
				} else {
					require.NoError(t, f.Close())
				}
				calls = 0
				for _, err := range saveShares(2, 3, open) {
					failed = failed || err != nil
				}
			})
			f := openMem(t, disk, checkpoint.Options{})
			want := []checkpoint.Step{1}
			if len(steps(t, f)) > 1 {
				want = append(want, 2)
			}
			require.Equal(t, want, steps(t, f))
			c, err := f.Newest(t.Context())
			require.NoError(t, err)
			is(t, c, int(want[len(want)-1]))
			require.Empty(t, leftovers(t, disk))
			require.NoError(t, f.Close())
			if !failed {
				require.Len(t, want, 2)
				break
			}
			failures++
		}
		require.Greater(t, failures, 4)
		t.Logf("rank %d: %d calls failed", rank, failures)
	}
}

// A job that is killed while it saves into a store leaves the step before, and its objects are removed.
func TestShares_killedInAStore(t *testing.T) {
	store := &memstore.Memory{}
	open := func(s checkpoint.Store) func(rank int) *checkpoint.Folder {
		return func(rank int) *checkpoint.Folder {
			f, err := checkpoint.OpenStore(t.Context(), s, "store", checkpoint.Options{ReadOnly: rank > 0, Log: quiet})
			require.NoError(t, err)
			return f
		}
	}
	for _, err := range saveShares(1, 3, open(store)) {
		require.NoError(t, err)
	}
	var mu sync.Mutex
	var moments []*memstore.Memory
	for _, err := range saveShares(2, 3, open(&memstore.Faulty{Store: store, Before: func(c memstore.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if c.Op == memstore.OpPut {
			moments = append(moments, store.Clone())
		}
		return nil
	}})) {
		require.NoError(t, err)
	}
	require.Len(t, moments, 6)
	for _, s := range moments {
		c, err := open(s)(0).Newest(t.Context())
		require.NoError(t, err)
		is(t, c, 1)
		keys, err := s.Keys(t.Context())
		require.NoError(t, err)
		require.Len(t, keys, 6, "what was put is removed: %v", keys)
	}
	// The file of a save that was given up, which comes late, is not taken for that of another one of the step.
	late := store.Clone()
	require.NoError(t, late.Delete(t.Context(), dir(2)+"/COMMIT"))
	synctest.Test(t, func(t *testing.T) {
		zero := open(late)(0)
		at, err := zero.Begin(t.Context(), 2)
		require.NoError(t, err)
		for _, key := range []string{"rank-00001.safetensors", "rank-00002.safetensors"} {
			require.NoError(t, late.Put(t.Context(), dir(2)+"/"+key, func(w io.Writer) error {
				text := make([]byte, 1<<20)
				n, _ := store.ReadAt(t.Context(), dir(2)+"/"+key, text, 0)
				_, err := w.Write(text[:n])
				return err
			}))
		}
		begin := time.Now()
		err = zero.Save(t.Context(), 2, share(2, 0, 3, at))
		require.ErrorContains(t, err, "the file rank-00001.safetensors of rank 1: it is still missing 10m0s after the parts of rank 0 were written")
		require.InDelta(t, 10*time.Minute, time.Since(begin), float64(2*time.Second))
	})
}

// A checkpoint that several processes save together is loaded whole, from a disk and from a store. Saved again it is
// one file.
func TestShares(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7} {
		disk, store := &vfs.Mem{}, &memstore.Memory{}
		for name, open := range map[string]func(checkpoint.Options) *checkpoint.Folder{
			"disk": func(o checkpoint.Options) *checkpoint.Folder { return openMem(t, disk, o) },
			"store": func(o checkpoint.Options) *checkpoint.Folder {
				f, err := checkpoint.OpenStore(t.Context(), store, "store", o)
				require.NoError(t, err)
				return f
			},
		} {
			keep := []checkpoint.Retention{{Last: 2}}
			for step := range checkpoint.Step(4) {
				for rank, err := range saveShares(step, n, func(rank int) *checkpoint.Folder {
					return open(checkpoint.Options{ReadOnly: rank > 0, ReadBack: true, Keep: keep, Log: quiet})
				}) {
					require.NoError(t, err, "%s: rank %d of %d", name, rank, n)
				}
			}
			if keys, err := store.Keys(t.Context()); name == "store" {
				require.NoError(t, err)
				require.Len(t, keys, 2*(3+n), "before anybody opens it anew: %v", keys)
			}
			f := open(checkpoint.Options{Log: quiet})
			require.Equal(t, []checkpoint.Step{2, 3}, steps(t, f))
			c, err := f.Newest(t.Context())
			require.NoError(t, err)
			is(t, c, 3)
			require.NoError(t, f.Verify(t.Context(), 2))
			require.NoError(t, f.Save(t.Context(), 9, c.Content()))
			c, err = f.Load(t.Context(), 9)
			require.NoError(t, err)
			is(t, c, 3)
			require.NoError(t, f.Close())
		}
		names, err := disk.ReadDir(dir(3))
		require.NoError(t, err)
		require.Len(t, names, 3+n)
		keys, err := store.Keys(t.Context())
		require.NoError(t, err)
		require.Len(t, keys, 2*(3+n)+3, "those of the steps that went are gone: %v", keys)
	}
}

// Tensors left in their files are read on demand, with their checksums verified again.
func TestShares_leftInTheFiles(t *testing.T) {
	m := sharedDisk(t, 1)
	f := openMem(t, m, checkpoint.Options{ReadOnly: true, LeaveSharded: true})
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	for _, w := range whole(1) {
		got, ok := c.Tensor(w.Name)
		require.True(t, ok)
		require.Equal(t, grid[w.Name] != nil, got.Write != nil)
		for range 2 {
			data := bytes.NewBuffer(append([]byte(nil), got.Data...))
			if got.Write != nil {
				require.NoError(t, got.Write(data))
			}
			require.Equal(t, w.Data, data.Bytes(), w.Name)
		}
	}
	to := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	require.NoError(t, to.Save(t.Context(), 1, c.Content()))
	again, err := to.Newest(t.Context())
	require.NoError(t, err)
	is(t, again, 1)
	path := dir(1) + "/rank-00001.safetensors"
	text := read(t, m, path)
	for i := range text[len(text)-64:] {
		text[len(text)-64+i] ^= 1
	}
	write(t, m, path, text)
	var found *checkpoint.DamagedError
	failed := 0
	for _, tensor := range c.Tensors {
		if tensor.Write == nil {
			continue
		}
		if err := tensor.Write(io.Discard); err != nil {
			require.ErrorAs(t, err, &found)
			require.Equal(t, path, found.Path)
			failed++
		}
	}
	require.Positive(t, failed)
}

// Processes that do not save the same state, and contents that are none.
func TestShares_refusals(t *testing.T) {
	two := func(change func(rank int, c *checkpoint.Content)) error {
		disk := &vfs.Mem{}
		var errs []error
		synctest.Test(t, func(t *testing.T) {
			zero, one := openMem(t, disk, checkpoint.Options{}), openMem(t, disk, checkpoint.Options{ReadOnly: true})
			at, err := zero.Begin(t.Context(), 1)
			require.NoError(t, err)
			contents := []checkpoint.Content{share(1, 0, 2, at), share(1, 1, 2, at)}
			for rank := range contents {
				change(rank, &contents[rank])
			}
			begin := time.Now()
			errs = append(errs, one.Save(t.Context(), 1, contents[1]), zero.Save(t.Context(), 1, contents[0]))
			require.Less(t, time.Since(begin), time.Minute)
			_, err = zero.Newest(t.Context())
			require.ErrorIs(t, err, checkpoint.ErrNone)
		})
		require.Empty(t, leftovers(t, disk))
		return errors.Join(errs...)
	}
	at := func(rank int, change func(t *checkpoint.Tensor)) func(int, *checkpoint.Content) {
		return func(r int, c *checkpoint.Content) {
			if r == rank {
				change(&c.Tensors[0])
			}
		}
	}
	for name, row := range map[string]struct {
		change func(int, *checkpoint.Content)
		want   string
	}{
		"both have the same parts": {at(1, func(t *checkpoint.Tensor) { t.Parts = share(1, 0, 2, shares.Slot{}).Tensors[0].Parts }), "appears twice"},
		"a part is missing":        {at(1, func(t *checkpoint.Tensor) { t.Parts = t.Parts[1:] }), `tensor "/rows", of which the processes gave their parts: 3 parts of dims [2], dims [8] take 4`},
		"another tensor":           {at(1, func(t *checkpoint.Tensor) { t.Name = "/other" }), "the processes do not save the same state"},
		"another type":             {at(1, func(t *checkpoint.Tensor) { t.DType = safetensors.I32 }), "the processes do not save the same state"},
		"other parts": {at(1, func(t *checkpoint.Tensor) {
			t.Parts = []shares.Part{{Start: []int{4}, Dims: []int{4}, Data: make([]byte, 16)}}
		}), "the processes do not save the same state"},
		"a part off the grid":         {at(1, func(t *checkpoint.Tensor) { t.Parts[0].Start = []int{1} }), `tensor "/rows": a part from [1] on: expected one on the grid of [2] in dims [8]`},
		"parts of two sizes":          {at(0, func(t *checkpoint.Tensor) { t.Parts[1].Dims = []int{4} }), "parts of dims [2] and [4]: expected equal dims"},
		"numbers of half a byte":      {at(0, func(t *checkpoint.Tensor) { t.DType, _ = safetensors.ParseDType("F4") }), "elements of dtype F4 cannot be sharded"},
		"too few bytes":               {at(1, func(t *checkpoint.Tensor) { t.Parts[0].Data, t.Parts[0].Write = make([]byte, 7), nil }), "Data has 7 bytes"},
		"a writer that fails":         {at(1, func(t *checkpoint.Tensor) { t.Parts[1].Write = func(io.Writer) error { return syscall.EIO } }), "rank 1: the parts of rank 1: "},
		"a panic":                     {at(0, func(t *checkpoint.Tensor) { t.Parts[1].Write = func(io.Writer) error { panic("the device is gone") } }), "the device is gone"},
		"Data beside Parts":           {at(0, func(t *checkpoint.Tensor) { t.Data = []byte{1} }), "it has Parts, and also Data or Write: set either Parts or one of Data and Write"},
		"two of a name":               {func(r int, c *checkpoint.Content) { c.Tensors = append(c.Tensors, c.Tensors[0]) }, "a second tensor of this name"},
		"one of a name that is whole": {func(r int, c *checkpoint.Content) { c.Tensors[len(c.Tensors)-1].Name = "/rows" }, "a second tensor of this name"},
	} {
		require.ErrorContains(t, two(row.change), row.want, name)
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	err := f.Save(t.Context(), 1, share(1, 0, 2, shares.Slot{}))
	require.ErrorContains(t, err, "give the content the Slot of rank 0's Folder.Begin, or use Resume")
	alone := share(1, 0, 1, shares.Slot{Again: 1, Token: 1})
	require.ErrorContains(t, f.Save(t.Context(), 1, alone), "it is sharded, and the content is share 0 of 1")
	require.ErrorContains(t, f.Save(t.Context(), 1, checkpoint.Content{Share: shares.Share{Rank: 1, Of: 2}}), "rank 1 of 2 has no part to save")
	_, err = openMem(t, &vfs.Mem{}, checkpoint.Options{ReadOnly: true}).Begin(t.Context(), 1)
	require.ErrorIs(t, err, checkpoint.ErrReadOnly)
}

// F39: the format of sharded tensors can be loaded by all later versions, like that of whole ones.
func TestF39_keptFormatOfShares(t *testing.T) {
	kept := filepath.Join("testdata", "format-2")
	if _, err := os.Stat(kept); *writeFixtures && errors.Is(err, fs.ErrNotExist) {
		for _, err := range saveShares(5, 2, func(rank int) *checkpoint.Folder {
			f, err := checkpoint.Open(kept, checkpoint.Options{ReadOnly: rank > 0})
			require.NoError(t, err)
			return f
		}) {
			require.NoError(t, err)
		}
		require.NoError(t, os.Remove(filepath.Join(kept, "LOCK")))
	}
	f, err := checkpoint.Open(kept, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	is(t, c, 5)
	require.NoError(t, f.Close())
}
