package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShape(t *testing.T) {
	for text, want := range map[string]struct {
		text                       string
		elements, bytes, allocated float64
		leaves                     int
	}{
		"f32[]":                          {"f32[]", 1, 4, 4, 1},
		"bf16[9,10]{1,0:T(8,128)(2,1)}":  {"bf16[9,10]", 90, 180, 2 * 16 * 128, 1},
		"s4[3]{0}":                       {"s4[3]", 3, 2, 2, 1},
		"pred[<=5,0]":                    {"pred[5,0]", 0, 0, 0, 1},
		"token[]":                        {"token[]", 0, 0, 0, 1},
		"(f32[2]{0}, (u8[3]{0}, s32[]))": {"(f32[2], (u8[3], s32[]))", 6, 15, 15, 3},
		"()":                             {"()", 0, 0, 0, 0},
		"b(f32[4]{0})":                   {"f32[4]", 4, 16, 16, 1},
		"f32[4]{0:S(1)}":                 {"f32[4]", 4, 16, 16, 1},
	} {
		s := scanner{text: text}
		got, err := s.shape(0)
		require.NoError(t, err, text)
		require.Equal(t, len(text), s.at, "%s: read to its end", text)
		require.Equal(t, want.text, got.String())
		require.Equal(t, []float64{want.elements, want.bytes, want.allocated}, []float64{got.elements(), got.bytes(), got.allocated()}, text)
		require.Len(t, got.leaves(), want.leaves, text)
	}
	s := scanner{text: "f32[4]{0:S(1)}"}
	got, err := s.shape(0)
	require.NoError(t, err)
	require.Equal(t, 1, got.space)
}

func TestShape_wrong(t *testing.T) {
	for text, want := range map[string]string{
		"":               `"": expected a shape`,
		"f32":            `"f32": expected a shape`,
		"x7[2]":          "an unknown type of number",
		"f32[a]":         "shape f32[a]: ",
		"f32[2]{0,1}":    "layout {0,1} of 1 axes",
		"f32[2,2]{0,0}":  "layout {0,0} of 2 axes",
		"f32[2,2]{0}":    "layout {0} of 2 axes",
		"(f32[2] s32[])": "expected the end of a tuple",
		"b(f32[2]":       "expected the end of a buffer",
	} {
		_, err := (&scanner{text: text}).shape(0)
		require.ErrorContains(t, err, want, text)
	}
}
