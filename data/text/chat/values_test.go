package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A comparison ends with the steps.
func TestEqual_steps(t *testing.T) {
	nested := &array{as: list}
	for range 24 {
		nested = &array{[]any{nested, nested}, list}
	}
	r := &renderer{}
	require.False(t, r.equal(nested, nested))
	require.ErrorContains(t, r.fault, "steps")
	require.Less(t, r.steps, mostSteps+10)
}
