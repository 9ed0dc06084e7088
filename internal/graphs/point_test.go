package graphs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPoint(t *testing.T) {
	boom := errors.New("strategies: no room")
	inside := &Failure{"managed", "train step", fmt.Errorf("xla: %w", boom)}
	require.EqualError(t, inside, "managed: train step: strategies: no room")
	require.EqualError(t, &Failure{"flaxlike", "fit", inside}, "flaxlike: fit: strategies: no room")
	require.EqualError(t, &Failure{"flaxlike", "", boom}, "flaxlike: no room")
	require.EqualError(t, fmt.Errorf("flaxlike: fit: %w", Inner(boom)), "flaxlike: fit: no room")
	require.ErrorIs(t, Inner(inside), boom)
	require.NoError(t, Inner(nil))
}
