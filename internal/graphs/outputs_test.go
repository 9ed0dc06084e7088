package graphs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputErrors(t *testing.T) {
	fitted, shape := fmt.Errorf("the threshold is %w", ErrOutdated), errors.New("the shape")
	errs := OutputErrors{"b": shape, "a": fitted, "c": fmt.Errorf("the threshold is %w", ErrOutdated)}
	require.EqualError(t, errs, "the threshold is outdated\nthe shape", "by name, each text once")
	require.Equal(t, []error{fitted, shape, errs["c"]}, errs.Unwrap())
	require.ErrorIs(t, errs, shape)
	require.False(t, errs.OfAnyInput())
	delete(errs, "b")
	require.True(t, errs.OfAnyInput())
}
