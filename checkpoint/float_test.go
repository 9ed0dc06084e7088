package checkpoint_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

// The text of a NaN is its bits in hexadecimal after a prefix, and no other text is accepted.
func TestFloat_textsThatAreNone(t *testing.T) {
	for _, text := range []string{`"NaN:"`, `"NaN:zz"`, `"7ff8000000000001"`, `"NaN:3ff0000000000000"`, `"inf"`} {
		var x checkpoint.Float
		require.Error(t, json.Unmarshal([]byte(text), &x), text)
	}
	var x checkpoint.Float
	require.NoError(t, json.Unmarshal([]byte(`"NaN:7ff8000000000001"`), &x))
}
