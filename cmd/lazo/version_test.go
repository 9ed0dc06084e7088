package main_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	got := run(t, "version")
	assert.Equal(t, 0, got.code)
	assert.Empty(t, cmp.Diff(versions, golden(got.stdout)))
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	needs := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(module))
	require.NotNil(t, needs)
	assert.Contains(t, got.stdout, "needs go"+needs[1]+" or newer", "what go.mod says")
}
