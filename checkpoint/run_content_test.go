package checkpoint_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

func TestPositionIsChecked(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	c, err := (&counter{}).Content(t.Context())
	require.NoError(t, err)
	c.Sections["loop"] = json.RawMessage(`{"steps":3,"samples":3,"time":0,"date":0}`)
	require.NoError(t, f.Save(t.Context(), 4, c))
	_, err = looked(f, &counter{})
	require.ErrorContains(t, err, `section "loop" says 3 steps, 3 samples and 0s: expected 4 steps`)
	c.Sections["loop"] = json.RawMessage(`{"steps":5,"samples":3,"time":0,"date":0}`)
	require.NoError(t, f.Save(t.Context(), 5, c))
	_, err = looked(f, &counter{})
	require.ErrorContains(t, err, `the tensor "loop.history" is missing`)
}
