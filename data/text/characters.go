package text

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

//go:embed characters.txt
var charactersFile string

// property has a character's, as in tokenizers 0.23.3.
type property uint64

const (
	word property = 1 << (iota + 30)
	wordRust
	space
	digit
	numeric
	punctuation
	control
	mark
	accent
	extends
	prepends
	breaks
	han
	hiragana
	katakana
	hangul
	thai
	upper
	lower
)

var (
	categories     = strings.Fields("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn")
	propertyLetter = "wWsdnpcmaebxHJKGTul"
	letter         = categorySet("L")
	number         = categorySet("N")
)

func categorySet(name string) (set property) {
	for i, c := range categories {
		if strings.HasPrefix(c, name) {
			set |= 1 << i
		}
	}
	return set
}

type charactersTable struct {
	pages      [(unicode.MaxRune + 1) >> 8]uint16
	entries    [][256]uint8
	properties []property
	lowered    map[rune]string
	unknown    map[rune]bool // tokenizers has no decomposition for it
}

func (t *charactersTable) of(r rune) property {
	return t.properties[t.entries[t.pages[r>>8]][r&255]]
}

// Go's own tables change with its versions; tokens must not.
var characters = sync.OnceValue(func() *charactersTable {
	t := &charactersTable{lowered: map[rune]string{}, unknown: map[rune]bool{}}
	index, pages := map[property]uint8{}, map[[256]uint8]uint16{}
	var page [256]uint8
	at, now := rune(0), uint8(0)
	until := func(end rune) {
		for ; at < end; at++ {
			page[at&255] = now
			if at&255 == 255 {
				n, known := pages[page]
				if !known {
					n = uint16(len(t.entries))
					pages[page] = n
					t.entries = append(t.entries, page)
				}
				t.pages[at>>8] = n
			}
		}
	}
	for line := range strings.Lines(charactersFile) {
		parts := strings.Fields(line)
		if parts[0] == "L" {
			var to strings.Builder
			for _, c := range parts[2:] {
				to.WriteRune(hexadecimal(c))
			}
			t.lowered[hexadecimal(parts[1])] = to.String()
			continue
		}
		if parts[0] == "N" {
			for _, c := range parts[1:] {
				t.unknown[hexadecimal(c)] = true
			}
			continue
		}
		p := categorySet(parts[1][:2])
		for _, c := range parts[1][2:] {
			p |= word << strings.IndexRune(propertyLetter, c)
		}
		until(hexadecimal(parts[0]))
		n, known := index[p]
		if !known {
			n = uint8(len(t.properties))
			index[p] = n
			t.properties = append(t.properties, p)
		}
		now = n
	}
	until(unicode.MaxRune + 1)
	return t
})

func hexadecimal(s string) rune {
	n, err := strconv.ParseUint(s, 16, 21)
	if err != nil {
		panic(fmt.Sprintf("text: characters.txt: %v", err))
	}
	return rune(n)
}

func (t *charactersTable) is(r rune, p property) bool { return t.of(r)&p != 0 }

func (t *charactersTable) decomposition(r rune, compatible bool) string {
	const first, last, vowels, trailing = 0xac00, 0xd7a3, 21, 28
	if r >= first && r <= last {
		at := r - first
		out := string([]rune{0x1100 + at/(vowels*trailing), 0x1161 + at%(vowels*trailing)/trailing})
		if at%trailing > 0 {
			out += string(0x11a7 + at%trailing)
		}
		return out
	}
	if t.unknown[r] {
		return ""
	}
	form := norm.NFD
	if compatible {
		form = norm.NFKD
	}
	return string(form.PropertiesString(string(r)).Decomposition())
}

func (t *charactersTable) order(r rune) uint8 {
	if r < 0x300 || t.unknown[r] {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

var composed = sync.OnceValue(func() map[[2]rune]rune {
	t, pairs := characters(), map[[2]rune]rune{}
	for r := rune(0xc0); r <= unicode.MaxRune; r++ {
		if r >= 0xac00 && r <= 0xdfff || t.unknown[r] {
			continue
		}
		d := norm.NFD.PropertiesString(string(r)).Decomposition()
		if len(d) == 0 || string(norm.NFC.Bytes(d)) != string(r) {
			continue
		}
		_, last := utf8.DecodeLastRune(d)
		first := []rune(string(norm.NFC.Bytes(d[:len(d)-last])))
		second, _ := utf8.DecodeRune(d[len(d)-last:])
		if len(first) == 1 {
			pairs[[2]rune{first[0], second}] = r
		}
	}
	return pairs
})

func compose(a, b rune) (rune, bool) {
	switch {
	case a >= 0x1100 && a < 0x1113 && b >= 0x1161 && b < 0x1176:
		return 0xac00 + ((a-0x1100)*21+(b-0x1161))*28, true
	case a >= 0xac00 && a <= 0xd7a3 && (a-0xac00)%28 == 0 && b > 0x11a7 && b < 0x11c3:
		return a + b - 0x11a7, true
	}
	r, ok := composed()[[2]rune{a, b}]
	return r, ok
}
