package listed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/listed"
)

// S47: messages repeat at most 100 bytes of a name, without breaking a character, and no terminal controls.
func TestS47_namesInMessagesAreShort(t *testing.T) {
	require.Equal(t, `"größe"`, listed.Quoted("größe"))
	require.Equal(t, `"\x1b[2J\u202e\n"`, listed.Quoted("\x1b[2J\u202e\n"))
	require.Equal(t, `"`+strings.Repeat("a", 100)+`"`, listed.Quoted(strings.Repeat("a", 100)))
	require.Equal(t, `"a`+strings.Repeat("é", 49)+`"… (600001 bytes)`, listed.Quoted("a"+strings.Repeat("é", 300_000)))
	require.Equal(t, `"`+strings.Repeat(`\x80`, 96)+`"… (200 bytes)`, listed.Quoted(strings.Repeat("\x80", 200)), "what is not UTF-8")
	require.Equal(t, `["a" "b"]`, listed.Some([]string{"a", "b"}))
	require.Less(t, len(listed.Some([]string{strings.Repeat("a", 600_000), "b"})), 200)
	require.Equal(t, `["a" "a" "a" "a" "a" "a" "a" "a" "a" "a"] and 2 more`, listed.Some(strings.Split("aaaaaaaaaaaa", "")))
}
