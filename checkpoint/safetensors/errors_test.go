package safetensors_test

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

func TestF27_HostileHeaders(t *testing.T) {
	most := int64(math.MinInt64)
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			var err error
			taken := allocated(func() { _, err = open(c.file) })
			require.ErrorContains(t, err, "safetensors: read header: byte ")
			require.ErrorContains(t, err, c.message)
			format := (*safetensors.FormatError)(nil)
			require.ErrorAs(t, err, &format)
			require.LessOrEqual(t, format.Offset, int64(len(c.file)), "inside the file")
			require.GreaterOrEqual(t, format.Offset, int64(0))
			require.Less(t, len(err.Error()), 600, "a hostile name does not flood the log")
			for _, known := range []error{io.ErrUnexpectedEOF, safetensors.ErrLimit} {
				require.Equal(t, known == c.cause, errors.Is(err, known), "%v", known)
			}
			require.LessOrEqual(t, taken, 2*int64(len(c.file))+slack)
			most = max(most, taken-2*int64(len(c.file)))
		})
	}
	t.Logf("%d of %d hostile headers are refused; at most 2 × file %+d kB taken, allowed +%d kB", len(hostile), len(hostile), most>>10, slack>>10)
}
