package safetensors

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScanner_strings(t *testing.T) {
	for _, text := range []string{"", "plain", "é\u2028\"\\/\b\f\n\r\t\x01\x1f", "😀"} {
		for name, written := range map[string][]byte{"its own": appendString(nil, text), "encoding/json's": func() []byte { b, _ := json.Marshal(text); return b }()} {
			s := scanner{text: string(written)}
			got, err := s.string()
			require.NoError(t, err, "%s", written)
			require.Equal(t, text, got, name)
			require.Equal(t, len(written), s.pos)
		}
	}
	s := scanner{text: `"\ud83d\ude00\u0041"`}
	got, err := s.string()
	require.NoError(t, err)
	require.Equal(t, "😀A", got)
	for _, wrong := range []string{`"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\ud83d"`, `"\ud83dx"`, `"\ude00"`, `"\u12g4"`, "\"\n\"", "\"\\t\n\"", "a"} {
		_, err := (&scanner{text: wrong}).string()
		var e *FormatError
		require.ErrorAs(t, err, &e, wrong)
	}
}

func TestScanner_integers(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, " 17,": 17, "9223372036854775807": 9223372036854775807} {
		got, err := (&scanner{text: text}).integer()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := (&scanner{text: "9223372036854775808"}).integer()
	require.ErrorIs(t, err, ErrLimit)
	for _, wrong := range []string{"", "-1", "01", "x"} {
		_, err := (&scanner{text: wrong}).integer()
		require.Error(t, err, wrong)
	}
}

func TestScanner_objects(t *testing.T) {
	keys := map[string]int64{}
	s := scanner{text: ` { "a" : [1, 2] , "b" : [ ] } x`}
	require.NoError(t, s.object(func(key string, at int) error {
		require.Equal(t, byte('"'), s.text[at])
		return s.array(func() error { n, err := s.integer(); keys[key] += n; return err })
	}))
	require.Equal(t, map[string]int64{"a": 3}, keys)
	require.Equal(t, " x", s.text[s.pos:])
	for _, wrong := range []string{"", "{", `{"a"}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`} {
		s := scanner{text: wrong}
		require.Error(t, s.object(func(string, int) error { _, err := s.integer(); return err }), wrong)
	}
}
