package tensorboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
)

func TestF29_namesLaw(t *testing.T) {
	anyName := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("%0AaF\n\xff"))), 0, 6).Draw(t, "bytes"))
	})
	drawn := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyName.Draw(t, "a"), anyName.Draw(t, "b")
		require.Equal(t, a == b, tensorboard.Escape(a) == tensorboard.Escape(b))
		require.Regexp(t, `^\PC*$`, tensorboard.Escape(a))
		drawn++
	})
	t.Logf("F29: %d pairs of names, none of which fell together", drawn)
}
