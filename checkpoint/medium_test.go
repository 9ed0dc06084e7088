package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

// Data that a store garbles is found when it is read back, before it is a checkpoint. The older checkpoint stays.
func TestStore_readsBack(t *testing.T) {
	s := &troubled{}
	f := openTroubled(t, s)
	require.NoError(t, f.Save(t.Context(), 1, content(1)))
	s.garbled = "state.safetensors"
	require.ErrorContains(t, f.Save(t.Context(), 2, content(2)), "read back: ")
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
}
