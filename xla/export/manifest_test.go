package export

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// A manifest decodes to its program.
func TestManifest_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Custom(func(t *rapid.T) value {
			v := value{Name: rapid.String().Draw(t, "name"), Role: Role(rapid.String().Draw(t, "role")),
				DType: pjrt.DType(rapid.IntRange(1, int(dtype.Count)-1).Draw(t, "dtype")).String(), Shape: append([]int{}, rapid.SliceOfN(rapid.IntRange(0, 9), 0, 5).Draw(t, "shape")...)}
			if rapid.Bool().Draw(t, "log") {
				v.Fields = []string{rapid.String().Draw(t, "field")}
			}
			return v
		}))
		want := &manifest{Format: format, Lazo: "v1.0.0", Name: rapid.String().Draw(t, "name"), StableHLO: "1.2.3",
			Files:  map[string]file{programName: {rapid.Int64Range(0, maxText).Draw(t, "bytes"), "00"}},
			Inputs: append([]value{}, values.Draw(t, "inputs")...), Outputs: append([]value{}, values.Draw(t, "outputs")...)}
		text, err := want.encode()
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		got, err := parseManifest(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzManifest(f *testing.F) {
	m, err := newManifest(program(), map[string]file{programName: {1, "00"}})
	require.NoError(f, err)
	text, err := m.encode()
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"format":1,"files":{"program.mlir":{}},"inputs":[{"name":"a","role":"batch","dtype":"f32","shape":[2]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		inputs, err := decodeValues(m.Inputs)
		if err != nil {
			return
		}
		if _, err := byName("input", inputs, State, Batch); err != nil {
			return
		}
		again, err := encodeValues(inputs)
		require.NoError(t, err)
		back, err := decodeValues(again)
		require.NoError(t, err)
		require.Len(t, back, len(inputs))
	})
}
