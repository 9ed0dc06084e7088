package pjrt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionOfAnotherType(t *testing.T) {
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	_, err = p.NewClient(map[string]any{"n": 1}, nil)
	require.Error(t, err)
	assert.True(t, strings.Contains(err.Error(), `"n"`) && strings.Contains(err.Error(), "int,"), "%v", err)
}
