package runs_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/runs"
)

// seal writes a record as package selection does.
func seal(t *testing.T, path string, record any) {
	t.Helper()
	text, err := json.Marshal(record)
	require.NoError(t, err)
	write(t, path, fmt.Sprintf(`{"crc32c":%q,"record":%s}`+"\n", safetensors.Checksum(0).Update(text).String(), text), os.O_TRUNC)
}

type record map[string]any

func planOf(t *testing.T, dir, best string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	seal(t, filepath.Join(dir, "search.json"), record{"Version": 1, "Settings": []map[string]string{
		{"Name": "Method", "Value": "random"}, {"Name": "Entry", "Value": "val_loss"}, {"Name": "Direction", "Value": best}}})
}

func trialOf(t *testing.T, dir string, number, rung int, value float64, parameters map[string]string, more record) {
	t.Helper()
	r := record{"trial": number, "parameters": parameters, "value": value, "epoch": 1, "epochs": rung + 1}
	for k, v := range more {
		r[k] = v
	}
	seal(t, filepath.Join(dir, fmt.Sprintf("trial-%04d-%d.json", number, rung)), r)
}

func TestFollow_search(t *testing.T) {
	dir := t.TempDir()
	of := filepath.Join(dir, "found")
	planOf(t, of, "lowest")
	trialOf(t, of, 0, 0, .5, map[string]string{"rate": "0.1"}, nil)
	trialOf(t, of, 1, 0, .3, map[string]string{"rate": "0.2"}, nil)
	trialOf(t, of, 1, 1, .2, map[string]string{"rate": "0.2"}, record{"pruned": true})
	trialOf(t, of, 2, 0, 0, map[string]string{"rate": "9"}, record{"failed": "diverged"})
	seal(t, filepath.Join(of, "trial-0003-drawn.json"), record{"trial": 3, "parameters": map[string]string{"rate": "0.3"}})
	seal(t, filepath.Join(of, "trial-0000-drawn.json"), record{"trial": 0, "parameters": map[string]string{"rate": "0.1"}})
	f := follow(t, dir)
	f.look()
	s := f.sinks["found (search)"]
	require.NotNil(t, s)
	require.NoError(t, s.err)
	got := s.search
	require.Equal(t, []string{"random", "val_loss", "lowest"}, []string{got.Method, got.Entry, got.Best})
	require.Equal(t, []string{"rate"}, got.Names)
	var order []int
	for _, one := range got.Trials {
		order = append(order, one.Number)
	}
	require.Equal(t, []int{1, 0, 2, 3}, order)
	require.Equal(t, .2, *got.Trials[0].Value)
	require.True(t, got.Trials[0].Pruned)
	require.Equal(t, 2, got.Trials[0].Epochs)
	require.True(t, got.Trials[1].Ended, "the record of an ended trial counts, not that of its start")
	require.Equal(t, "diverged", got.Trials[2].Failed)
	require.Nil(t, got.Trials[2].Value)
	require.False(t, got.Trials[3].Ended)

	trialOf(t, of, 3, 0, .1, map[string]string{"rate": "0.3"}, nil)
	f.read()
	require.Equal(t, 3, s.search.Trials[0].Number)
	write(t, filepath.Join(of, "trial-0004-0.json"), `{"crc32c":"0","record":{}}`, 0)
	f.read()
	require.ErrorIs(t, s.err, safetensors.ErrChecksum)
	require.Len(t, s.search.Trials, 4, "others are shown")

	places, _, err := runs.Find(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, places, "a search is no run")
}

// The value depends on a, a little on c, and not on b; kind decides between two equal halves.
func TestSearch_importance(t *testing.T) {
	share := func(best string, value func(a, b float64, kind string) float64) map[string]float64 {
		dir := t.TempDir()
		planOf(t, dir, best)
		for i := range 64 {
			a, b, kind := float64(i%8), float64((i*37)%61), []string{"relu", "tanh"}[i/8%2]
			trialOf(t, dir, i, 0, value(a, b, kind), map[string]string{"a": fmt.Sprint(a), "b": fmt.Sprint(b), "kind": kind, "same": "1"}, nil)
		}
		f := follow(t, dir)
		f.look()
		all := map[string]float64{}
		for _, i := range f.only().search.Importance {
			all[i.Name] = i.Share
		}
		return all
	}
	for _, best := range []string{"lowest", "highest"} {
		got := share(best, func(a, _ float64, _ string) float64 { return math.Exp(10 * a) })
		require.Greater(t, got["a"], .9, "%v", got)
		require.Less(t, got["b"], .15, "%v", got)
		require.Less(t, got["kind"], .15, "%v", got)
		require.Zero(t, got["same"])
	}
	got := share("lowest", func(_, b float64, kind string) float64 { return float64(strings.Index("relu tanh", kind))*100 + b })
	require.Greater(t, got["kind"], .6, "%v", got)
	require.Less(t, got["a"], .15)
	got = share("lowest", func(float64, float64, string) float64 { return 1 })
	require.Equal(t, map[string]float64{"a": 0, "b": 0, "kind": 0, "same": 0}, got)
}
