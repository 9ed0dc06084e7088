package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of the toy's mutants each ends as it must: those that its test can see are killed, and those that change nothing it
// can see survive.
func TestSample(t *testing.T) {
	var out bytes.Buffer
	r := &runner{out: &out, workers: 2, slowest: time.Minute, budget: time.Minute}
	tried, err := r.sample(t.Context(), ".", []string{"./testdata/toy"}, nil, 1000, 1, "")
	require.NoError(t, err, out.String())
	got := map[string]outcome{}
	for _, m := range tried {
		got[m.change] = m.outcome
	}
	require.Equal(t, map[string]outcome{
		"n < 0: < to <=":                           killed,
		"0 in n < 0: 1":                            killed,
		"return 0, errNegative: result 2 is nil":   killed,
		"n%2 == 1 && n > 0: && to ||":              killed,
		"n%2 == 1: == to !=":                       killed,
		"n%2: % to *":                              killed,
		"2 in n%2: 3":                              survived, // 1 and 8 do not tell
		"1 in n%2 == 1: 2":                         killed,
		"n > 0: > to >=":                           survived, // an odd number is not 0
		"0 in n > 0: 1":                            killed,
		"return -1, nil: result 1 is *new(int)":    killed,
		"n / 2: / to *":                            killed,
		"2 in n / 2: 3":                            killed,
		"return n / 2, nil: result 1 is *new(int)": killed,
		"n + 1: + to -":                            notReached,
		"1 in n + 1: 2":                            notReached,
		"return n + 1: result 1 is *new(int)":      notReached,
	}, got, "what a String method says is passed over")
	require.Regexp(t, `\| all \| 17 \| 12 \| 0 \| 2 \| 3 \| 70\.6 % \|`, out.String())
	left, err := filepath.Glob("testdata/toy/*")
	require.NoError(t, err)
	require.Len(t, left, 2, "the tree is as it was")
}

// Tests of another package find mutants too where it is named; a test that fails by itself finds none, which is said
// where it matters.
func TestSample_testsElsewhere(t *testing.T) {
	var out bytes.Buffer
	r := &runner{out: &out, workers: 2, slowest: time.Minute, budget: time.Minute}
	tried, err := r.sample(t.Context(), ".", []string{"./testdata/toy"}, []string{"./testdata/toytest"}, 0, 1, "toy.go:13,toy.go:20")
	require.NoError(t, err, out.String())
	for _, m := range tried {
		switch {
		case m.line == 20:
			require.Equal(t, killed, m.outcome, m.change)
			require.Equal(t, "TestUntested", m.by)
		case m.outcome == survived:
			require.Contains(t, out.String(), m.String())
			require.Contains(t, m.String(), "TestBroken may find it, left out")
		}
	}
	require.Contains(t, out.String(), "toytest TestBroken is left out: it fails without a mutant: ")
	_, err = r.sample(t.Context(), ".", []string{"./testdata/toy"}, nil, 0, 1, "toy.go:1")
	require.EqualError(t, err, "no mutant is at toy.go:1")
}
