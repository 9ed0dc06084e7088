package document

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExact(t *testing.T) {
	type inner struct {
		ID int `json:"id" exact:"required"`
	}
	type content struct {
		inner
		Name  string         `json:"name"`
		Maybe *string        `json:"maybe"`
		Flag  bool           `json:"flag" exact:"null"`
		Parts []inner        `json:"parts"`
		Each  map[string]int `json:"each"`
		Any   any            `json:"any"`
	}
	for text, message := range map[string]string{
		`{"id": 1, "maybe": null, "flag": null, "any": null, "parts": [{"id": 2}, {"id": 3}], "each": {"a": 1, "A": 2}}`: "",
		` { "id":1 , "any" : {"Id":[null, "]}"]}, "name":"\"}" , "parts" : [ ] } `:                                       "",
		`{"\u0069d": 1, "other": {"ID": [1, {"x": "\\"}]}}`:                                                              "",
		`{"id": 1, "ID": 2}`:                   `it has the name "ID", expected "id" exactly`,
		`{"id": 1, "other": 1, "Name": "a"}`:   `it has the name "Name", expected "name" exactly`,
		`{"id": 1, "parts": [{"Id": 1}]}`:      `an element of "parts" has the name "Id"`,
		`{"id": 1, "id": 1}`:                   `it has "id" twice`,
		`{"name": "a"}`:                        `it lacks "id"`,
		`{"id": 1, "parts": [{}]}`:             `an element of "parts" lacks "id"`,
		`{"id": null}`:                         `"id" is null, expected a value`,
		`{"id": 1, "parts": [null]}`:           `an element of "parts" is null`,
		`{"id": 1, "each": {"a": 1,"b":null}}`: `"b" is null`,
		`null`:                                 "it is null",
		`{"id": 1} {}`:                         "2 bytes follow it",
		`{"id": 1`:                             "unexpected EOF",
	} {
		err := Exact([]byte(text), &content{}, false)
		if message == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, message, text)
	}
	require.ErrorContains(t, Exact([]byte(`{"id": 1, "other": 2}`), &content{}, true), "unknown field")
}
