package records

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSON(t *testing.T) {
	var s strings.Builder
	require.NoError(t, WriteJSON(&s, each(someRows())))
	require.True(t, json.Valid([]byte(s.String())), s.String())
	require.Contains(t, s.String(), `"test.loss":"-Infinity"`)
	for _, text := range []string{s.String(), "\ufeff" + s.String(), strings.NewReplacer("[\n", "", "\n]", "", ",\n", "\n").Replace(s.String())} {
		var got []Row
		require.NoError(t, ReadJSON(strings.NewReader(text), keeping(&got)), text)
		require.Equal(t, someRows(), got)
	}
	s.Reset()
	require.NoError(t, WriteJSON(&s, each(nil)))
	require.Equal(t, "[\n]\n", s.String())
}

func TestReadJSON_refuses(t *testing.T) {
	for text, want := range map[string]string{
		`[{"elapsed.steps":1},`:                  "row 2, before byte ",
		`[{"elapsed.steps":1}] 2`:                "want nothing after the array, got 2",
		`[{"elapsed.steps":1}, 2]`:               "want an object for a row, got 2",
		`{"train.loss":1}`:                       "no elapsed.steps",
		`{"elapsed.steps":null}`:                 "want a number, got <nil>",
		`{"elapsed.steps":1,"elapsed.steps":1}`:  `"elapsed.steps" comes twice`,
		`{"elapsed.steps":1,"train.loss":"low"}`: `want a number, "NaN", "Infinity" or "-Infinity", got "low"`,
		`{"elapsed.steps":1,"train.loss":[1]}`:   `"train.loss": want a number, got [`,
		`{"elapsed.steps":1.5}`:                  `want an integer of 64 bits, got "1.5"`,
		`{"elapsed.steps":1,"train.loss":1`:      "unexpected EOF",
	} {
		require.ErrorContains(t, ReadJSON(strings.NewReader(text), func(*Row) error { return nil }), want, text)
	}
	var got []Row
	require.NoError(t, ReadJSON(strings.NewReader(`{"elapsed.steps":1,"train.loss":null}`), keeping(&got)))
	require.Empty(t, got[0].Columns, "a missing value")
}
