package text

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var normalOf = flag.String("normal", "", "the `file` that testdata/characters.py wrote: what NFD and NFKD make of each character")

// Decompositions and orders of marks are those of tokenizers. It needs a file of 500 kB.
func TestCharacters_normal(t *testing.T) {
	c := characters()
	require.Less(t, len(c.properties), 256)
	if *normalOf == "" {
		require.Equal(t, "A\u030a", c.decomposition('Å', false))
		return
	}
	f, err := os.Open(*normalOf)
	require.NoError(t, err)
	defer f.Close()
	written := map[rune][]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		parts := strings.Fields(lines.Text())
		written[hexadecimal(parts[0])] = parts[1:]
	}
	text := func(s string) string {
		var all []string
		for _, r := range s {
			all = append(all, fmt.Sprintf("%x", r))
		}
		return strings.Join(all, ".")
	}
	var differ []string
	for r := rune(0x80); r < 0x110000; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		var got []string
		for _, compatible := range []bool{false, true} {
			d := c.decomposition(r, compatible)
			if d == "" {
				d = string(r)
			}
			got = append(got, text(d))
		}
		order := ""
		if got[0] == text(string(r)) {
			for _, m := range "\u0334\u3099\u0327\u0316\u0301\u0345" {
				if o := c.order(r); o != 0 && o < c.order(m) {
					order += "1"
				} else {
					order += "0"
				}
			}
		}
		want := written[r]
		if want == nil {
			want = []string{text(string(r)), text(string(r)), "000000"}
			if order == "" {
				order = "-"
			}
		}
		if order == "" {
			order = "-"
		}
		if got = append(got, order); fmt.Sprint(got) != fmt.Sprint(want) {
			differ = append(differ, fmt.Sprintf("%x %v %v", r, got, want))
		}
	}
	require.Empty(t, differ)
}
