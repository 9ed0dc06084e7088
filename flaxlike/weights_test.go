package flaxlike_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/export"
)

func normalised() nn.Layer {
	return nn.Sequential{nn.Dense{Units: 4}, nn.BatchNorm{}, nn.Dense{Units: 3}}
}

func TestSaveAndLoad(t *testing.T) {
	set, path := sorted(t, 64), filepath.Join(t.TempDir(), "model.safetensors")
	m := newModel(t, normalised(), flaxlike.WithLoss(sparse))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 3}))
	require.NoError(t, err)
	require.NoError(t, m.Save(path))

	other := newModel(t, normalised(), flaxlike.WithLoss(sparse), flaxlike.WithSeed(5))
	require.NoError(t, other.Init(t.Context(), first(t, set, 32)))
	require.NotEqual(t, values(t, m), values(t, other))
	require.NoError(t, other.Load(t.Context(), path))
	require.Equal(t, values(t, m), values(t, other), "the averages of batch norm too")
	want, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	got, err := other.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = other.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.NoError(t, err, "it goes on training")

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	r, err := safetensors.NewReader(f, info.Size(), safetensors.Limits{})
	require.NoError(t, err)
	tensor, ok := r.Tensor("0/kernel")
	require.True(t, ok)
	require.Equal(t, []int{3, 4}, tensor.Dims)
	require.NoError(t, m.Save(path), "over the old one")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
}

// A file that does not fit, or is damaged, changes nothing.
func TestLoad_pipe(t *testing.T) {
	set, path := sorted(t, 64), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	m := newModel(t, normalised())
	require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
	done := make(chan error, 1)
	go func() { done <- m.Load(t.Context(), path) }()
	select {
	case err := <-done:
		require.ErrorContains(t, err, path+": is not a regular file")
	case <-time.After(10 * time.Second):
		t.Fatal("Load waits for the pipe's writer")
	}
}

func TestLoadAllOrNothing(t *testing.T) {
	set, dir := sorted(t, 64), t.TempDir()
	build := func(n nn.Layer) *flaxlike.Model {
		m := newModel(t, n, flaxlike.WithLoss(sparse))
		require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
		return m
	}
	for name, n := range map[string]nn.Layer{"good": normalised(), "wide": nn.Sequential{nn.Dense{Units: 5}, nn.BatchNorm{}, nn.Dense{Units: 3}},
		"few": nn.Sequential{nn.Dense{Units: 4}}, "more": nn.Sequential{nn.Dense{Units: 4}, nn.BatchNorm{}, nn.Dense{Units: 3}, nn.Dense{Units: 3}}} {
		require.NoError(t, build(n).Save(filepath.Join(dir, name)))
	}
	good, err := os.ReadFile(filepath.Join(dir, "good"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "torn"), good[:len(good)-1], 0o600))
	m := newModel(t, normalised(), flaxlike.WithSeed(3))
	require.ErrorIs(t, m.Load(t.Context(), filepath.Join(dir, "good")), flaxlike.ErrNotBuilt)
	require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
	before := values(t, m)
	for name, want := range map[string]string{"wide": `"0/bias" is float32[5] in the file, and float32[4] in the model`, "few": `the file has no "1/`,
		"more": `the file has "3/`, "torn": "torn", "absent": "no such file"} {
		require.ErrorContains(t, m.Load(t.Context(), filepath.Join(dir, name)), want, name)
		require.Equal(t, before, values(t, m), name)
	}
	require.Error(t, m.Save(filepath.Join(dir, "absent", "model")))
}

// The format has no checksum: weights with one bit turned loaded as if they were those that were saved.
func TestLoad_rottenValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	m := newModel(t, normalised(), flaxlike.WithLoss(sparse))
	require.NoError(t, m.Init(t.Context(), first(t, sorted(t, 64), 32)))
	require.NoError(t, m.Save(path))
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	before := values(t, m)
	for at := 8 + int(binary.LittleEndian.Uint64(good)); at < len(good); at += 7 {
		rotten := bytes.Clone(good)
		rotten[at] ^= 4
		require.NoError(t, os.WriteFile(path, rotten, 0o600))
		err := m.Load(t.Context(), path)
		require.ErrorIs(t, err, safetensors.ErrChecksum, "byte %d", at)
		require.ErrorContains(t, err, path)
		require.Equal(t, before, values(t, m))
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	require.NoError(t, m.Load(t.Context(), path))
}

// A file saved when GoMLX kept the heads of attention apart and scaled twice, up to v0.26, loads, and the model
// predicts the same.
func TestLoad_headsApart(t *testing.T) {
	const path = "testdata/attention_gomlx_v0.26.safetensors"
	m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 4}, nn.Attention{Heads: 2, Width: 3}, nn.Dense{Units: 2}})
	set := must.M1(data.New(data.X([]int32{1, 2, 3, 4, 1, 0}, 2, 3)))
	require.NoError(t, m.Init(t.Context(), first(t, set, 2)))
	require.NoError(t, m.Load(t.Context(), path))
	// The predictions of the lazo that saved it.
	there := []float32{5.571454, -2.501322, -0.7608004, 0.77349895, 2.2216997, -0.7850703, -0.34692547, 0.7704849, 4.568568, -1.6850665, -0.0015024211, 0.5995558}
	predicted, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.InDeltaSlice(t, there, output(t, predicted).Flat, 1e-5)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := safetensors.NewReader(bytes.NewReader(text), int64(len(text)), safetensors.Limits{})
	require.NoError(t, err)
	apart := 0
	for saved := range r.Tensors() {
		want, _, err := r.Read(saved.Name)
		require.NoError(t, err)
		now := strings.NewReplacer("MultiHeadAttention/", "", "dense/weights", "kernel", "dense/biases", "bias").Replace(saved.Name)
		v, err := m.Value("/model/" + now)
		require.NoError(t, err)
		if len(saved.Dims) != v.Rank() {
			apart++
		}
		if !strings.Contains(saved.Name, "/query/") { // which was divided by the root of a head's width
			require.NoError(t, v.ConstBytes(func(got []byte) { require.Equal(t, want, got, saved.Name) }))
		}
	}
	require.Equal(t, 6, apart, "weights and biases of query, key and value")
}

func TestExport(t *testing.T) {
	set, dir := sorted(t, 64), filepath.Join(t.TempDir(), "served")
	m := newModel(t, normalised(), flaxlike.WithLoss(sparse))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.NoError(t, err)
	batch := first(t, set, 32)
	batch.Fields = batch.Fields[:1]
	require.NoError(t, m.Export(dir, batch, managed.ExportOptions{}))
	p, err := export.Load(dir)
	require.NoError(t, err)
	var outputs []string
	for _, o := range p.Outputs {
		outputs = append(outputs, o.Name)
	}
	require.Equal(t, []string{"preds"}, outputs)
}
