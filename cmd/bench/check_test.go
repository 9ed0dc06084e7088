//lazo:norace
package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The chances are those of scipy.stats.mannwhitneyu(now, before, alternative="greater", method="asymptotic").
func TestCompare(t *testing.T) {
	for _, row := range []struct {
		before, now []float64
		ratio, want float64
		slower      bool
	}{
		{[]float64{1, 2, 3, 4, 5, 6, 7}, []float64{8, 9, 10, 11, 12, 13, 14}, 11. / 4, 0.0010825, true},
		{[]float64{8, 9, 10, 11, 12, 13, 14}, []float64{1, 2, 3, 4, 5, 6, 7}, 4. / 11, 0.9993, false},
		{[]float64{1, 2, 2, 3, 3, 5}, []float64{2, 2, 3, 5, 5, 6}, 4 / 2.5, 0.1411385, false},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1, 1, false},
		{[]float64{100, 101, 102, 103, 104, 105, 106}, []float64{107, 108, 109, 110, 111, 112, 113}, 110. / 103, 0.0010825, true},
		{[]float64{1000, 1001, 1002, 1003, 1004, 1005, 1006}, []float64{1007, 1008, 1009, 1010, 1011, 1012, 1013}, 1010. / 1003, 0.0010825, false},
	} {
		got := compare(row.before, row.now)
		require.InDelta(t, row.ratio, got.Ratio, 1e-9)
		require.InDelta(t, row.want, got.Chance, 1e-4)
		require.Equal(t, row.slower, got.slower())
	}
	r, told := rand.New(rand.NewPCG(1, 1)), 0
	for range 1000 { // equal programs
		var before, now []float64
		for range 9 {
			before, now = append(before, 1+0.2*r.Float64()), append(now, 1+0.2*r.Float64())
		}
		if compare(before, now).slower() {
			told++
		}
	}
	require.Less(t, told, 20)
}

// Two programs take turns, and the one that begins changes.
func TestInTurns(t *testing.T) {
	dir := t.TempDir()
	programs := [2]string{}
	for i, name := range []string{"before", "now"} {
		programs[i] = filepath.Join(dir, name)
		text := "#!/bin/sh\nfor i in 1 2 3; do echo ready; read x; echo " + name + " >> '" + dir + "/turns'; done\n" +
			`echo '{"workload":"w","unit":"s","values":[1,2,3],"variant":"` + name + `"}'` + "\n"
		require.NoError(t, os.WriteFile(programs[i], []byte(text), 0o700))
	}
	lines, err := inTurns(t.Context(), 3, programs, nil)
	require.NoError(t, err)
	require.Equal(t, "before", lines[0].Variant)
	require.Equal(t, "now", lines[1].Variant)
	require.Equal(t, []float64{1, 2, 3}, lines[1].Values)
	turns, err := os.ReadFile(filepath.Join(dir, "turns"))
	require.NoError(t, err)
	require.Equal(t, "before now now before before now", strings.Join(strings.Fields(string(turns)), " "))
	_, err = inTurns(t.Context(), 4, programs, nil)
	require.ErrorContains(t, err, "ended without a result")
}

func TestTimesOf(t *testing.T) {
	require.Equal(t, []float64{0.5, 0.25}, timesOf(line{Unit: "steps/s", Values: []float64{2, 4}}))
	require.Equal(t, []float64{2, 4}, timesOf(line{Unit: "us/run", Values: []float64{2, 4}}))
}
