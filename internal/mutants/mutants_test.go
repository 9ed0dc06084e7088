//lazo:norace
package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// A sample is the same for a seed, another for another.
func TestOrder(t *testing.T) {
	all, err := load(".", []string{"./testdata/toy"})
	require.NoError(t, err)
	changes := func(seed uint64) (list []string) {
		found := find(all[0])
		order(found, seed)
		for _, m := range found {
			list = append(list, m.change)
		}
		return list
	}
	require.Equal(t, changes(1), changes(1))
	require.NotEqual(t, changes(1), changes(2))
}

var toyControl = control{name: "toy", file: "testdata/toy/toy.go", pkg: "testdata/toy", test: "TestHalf"}

// A control that its test finds is well, and one that it does not find is an error, as is one that fits the code no
// more.
func TestControls(t *testing.T) {
	var out bytes.Buffer
	r := &runner{out: &out}
	try := func(test string, edits ...edit) error {
		c := toyControl
		c.test, c.edits = test, edits
		return r.controls(t.Context(), ".", []control{c}, nil)
	}
	require.NoError(t, try("TestHalf", edit{"n / 2", "n / 3"}))
	require.ErrorIs(t, try("TestHalf", edit{"n > 0", "n >= 0"}), errSurvived)
	require.ErrorContains(t, try("TestHalf", edit{"n / 9", "n"}), "appears 0 times")
	require.ErrorContains(t, try("TestOther", edit{"n / 2", "n / 3"}), "there is no test TestOther")
	require.ErrorContains(t, try("TestHalf", edit{"n / 2", "n / nothing"}), "undefined: nothing")
}

// The controls of lazo fit its code, and their tests are there.
func TestControlsFit(t *testing.T) {
	for _, c := range controls {
		_, err := c.texts("../..")
		assert.NoError(t, err)
		files, err := filepath.Glob(filepath.Join("../..", c.pkg, "*_test.go"))
		require.NoError(t, err)
		there := false
		test, _, _ := strings.Cut(c.test, "/") // the rest is of its parts
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			there = there || regexp.MustCompile(`(?m)^func `+test+`\(`).Match(text)
		}
		assert.True(t, there, "%s: there is no test %s in %s", c.name, c.test, c.pkg)
		require.Equal(t, strings.TrimSpace(c.name), c.name)
	}
	t.Logf("%d controls", len(controls))
}
