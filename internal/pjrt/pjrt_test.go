package pjrt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionCheck(t *testing.T) {
	rows := []struct {
		name    string
		version Version
		ok      bool
	}{
		{"oldest", Version{0, MinMinor, MinTableSize}, true},
		{"newer minor", Version{0, MinMinor + 40, MinTableSize + 400}, true},
		{"older minor", Version{0, MinMinor - 1, MinTableSize}, false},
		{"newer major", Version{1, 0, MinTableSize}, false},
		{"negative major", Version{-1, MinMinor, MinTableSize}, false},
		{"short table", Version{0, MinMinor, MinTableSize - 8}, false},
		{"no version at all", Version{0, 0, 16}, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := row.version.Check("/p.so")
			if row.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrABI)
			var abi *ABIError
			require.ErrorAs(t, err, &abi)
			assert.Equal(t, row.version, abi.Got)
			assert.Contains(t, err.Error(), row.version.String(), "the plugin's version")
			assert.Contains(t, err.Error(), "0.81", "the version needed")
		})
	}
}
