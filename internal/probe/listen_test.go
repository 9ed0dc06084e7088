package probe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// The child's output may come from a corrupted library.
func FuzzListen(f *testing.F) {
	f.Add([]byte(`{"Stage":"load"}` + "\n" + `{"Report":{"Platform":"cpu"}}`))
	f.Add([]byte(`{"Stage":"load"}{"Failure":{"Code":"abi","Text":"x","Version":{"Minor":3}}}`))
	f.Add([]byte(`{"Failure":null,"Report":null}`))
	f.Add([]byte(strings.Repeat("[", 100_000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := &Error{Path: "/p.so", Stage: StageStart, Kind: ErrUnknown, Cause: ErrUnknown}
		last, err := listen(bytes.NewReader(data), e)
		if (err == nil) != (last.Report != nil || last.Failure != nil) {
			t.Fatalf("answer %+v with error %v", last, err)
		}
		if last.Failure != nil {
			last.Failure.fill(e)
		}
		if e.Kind == nil || e.Cause == nil || e.Error() == "" {
			t.Fatalf("incomplete error %#v", e)
		}
	})
}

// An error is the same on both sides of the pipe.
func TestFailureRoundTrip(t *testing.T) {
	for _, c := range causes {
		t.Run(c.code, func(t *testing.T) {
			original := c.err
			if original == pjrt.ErrABI { // the sentinel itself
				original = &pjrt.ABIError{Path: "/p.so", Got: pjrt.Version{Minor: 7, StructSize: 80}}
			}
			e := &Error{Path: "/p.so", Stage: StageRun}
			newFailure(original).fill(e)
			require.ErrorIs(t, e, c.err)
			require.ErrorIs(t, e, c.kind)
			assert.Equal(t, c.kind, e.Kind)
		})
	}
}
