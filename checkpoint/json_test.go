package checkpoint

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

func TestCheckJSON(t *testing.T) {
	for _, v := range []any{map[string]any{"a": 1, "b": map[string]any{"a": []any{map[string]any{"a": "\"a\":"}}}}, map[string]any{"<é\u2028\x01\t\\\"": 1}, "a", nil} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, checkJSON(text), "%s", text)
	}
	for text, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`:   `byte 13: the key "a" appears twice`,
		`[{"x":{"a":1,"a":1}}]`: `the key "a" appears twice`,
		`{"\u0061":1}`:          "is not encoded as by encoding/json",
		`{"\u003C":1}`:          "is not encoded as by encoding/json", // it writes \u003c
		`{"<":1}`:               "is not encoded as by encoding/json",
		`{"\/":1}`:              "is not encoded as by encoding/json",
		`{"a":1`:                "not JSON",
		"{\"\xff\":1}":          "not UTF-8",
	} {
		require.ErrorContains(t, checkJSON([]byte(text)), want, text)
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	require.NoError(t, checkJSON(deep(depthLimit)))
	require.ErrorIs(t, checkJSON(deep(depthLimit+1)), safetensors.ErrLimit)
}

func TestMembers(t *testing.T) {
	found := map[string]string{}
	for key, value := range members([]byte(`{"a": [1, {"b": ":,}"}] ,"c":"x,\"y" , "d":{} }`)) {
		found[string(key)] = string(value)
	}
	require.Equal(t, map[string]string{`"a"`: `[1, {"b": ":,}"}]`, `"c"`: `"x,\"y"`, `"d"`: `{}`}, found)
	for range members([]byte(`{}`)) {
		t.Error("a member of an empty object")
	}
}
