package graphs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInput(t *testing.T) {
	require.NoError(t, Input(nil))
	cause := errors.New("field x has 3 columns, expected 4")
	err := fmt.Errorf("predict: %w", Input(cause))
	require.ErrorIs(t, err, ErrInput)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "predict: field x has 3 columns, expected 4")
	require.NotErrorIs(t, cause, ErrInput)
}
