package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTypes(t *testing.T) {
	for kind, want := range map[int64][2]bool{single: {true, false}, doubles: {true, false}, half: {true, true}, brain: {true, true}, int64s: {false, false}, bools: {false, false}, 99: {false, false}} {
		require.Equal(t, want, [2]bool{floating(kind), narrow(kind)}, "data type %d", kind)
	}
}
