//lazo:norace
package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
