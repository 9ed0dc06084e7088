package xla_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

// Long equal beginnings of lines, such as signatures of large models, are shortened around the difference.
func TestFirstDifference(t *testing.T) {
	long := strings.Repeat("%p: tensor<8x8xf32>, ", 200)
	zero, own := "module\n  "+long+"tensor<9xf32>"+long, "module\n  "+long+"tensor<10xf32>"+long
	said := xla.FirstDifference(zero, own)
	require.Regexp(t, `^line 2 of the program is …".{60}10xf32>.*"…, that of rank 0 …".{60}9xf32>.*"…$`, said)
	require.Less(t, len(said), 500)
	require.Equal(t, `line 1 of the program is "é <b>", that of rank 0 "é"`, xla.FirstDifference("é", " é <b>"))
	require.Equal(t, "the program has 2 lines, that of rank 0 1", xla.FirstDifference("a", "a\n"))
}
