package text

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

type normalizer func(p *span, places bool) error

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

const (
	mostGrowth = 64
	growAnyway = 1 << 16
)

func grown(before, after int, by string) error {
	if after > mostGrowth*before+growAnyway {
		return fmt.Errorf("text: the %s makes %d bytes of %d, expected at most %d", by, after, before, mostGrowth*before+growAnyway)
	}
	return nil
}

func inSequence(all []normalizer) normalizer {
	return func(p *span, places bool) error {
		before := len(p.s)
		for _, n := range all {
			if err := n(p, places); err != nil {
				return err
			}
			if err := grown(before, len(p.s), "normalizer"); err != nil {
				return err
			}
		}
		return nil
	}
}

func lowercase(p *span, places bool) error {
	if isASCII(p.s) {
		p.s = strings.ToLower(p.s)
		return nil
	}
	lowered := characters().lowered
	edits := make([]edit, 0, len(p.s))
	for _, r := range p.s {
		if r < utf8.RuneSelf {
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			edits = append(edits, edit{r: r})
			continue
		}
		to, ok := lowered[r]
		if !ok {
			edits = append(edits, edit{r: r})
			continue
		}
		change := 0
		for _, c := range to {
			edits = append(edits, edit{c, change})
			change = 1
		}
	}
	p.changeAll(edits, 0, places)
	return nil
}

// decompose is NFD or NFKD, composing NFC or NFKC. Package norm would insert a character into many marks.
func decompose(compatible, composing bool) normalizer {
	return func(p *span, places bool) error {
		if isASCII(p.s) {
			return nil
		}
		t := characters()
		edits := make([]edit, 0, len(p.s))
		orders := make([]uint8, 0, len(p.s))
		sorted := 0
		add := func(r rune, change int) {
			of := t.order(r)
			if of == 0 {
				sorted = len(edits) + 1
			}
			edits, orders = append(edits, edit{r, change}), append(orders, of)
		}
		unsorted := func() {
			stableByOrder(edits[sorted:], orders[sorted:])
		}
		for _, r := range p.s {
			d := ""
			if r >= utf8.RuneSelf {
				d = t.decomposition(r, compatible)
			}
			if d == "" {
				d = string(r)
			}
			change := 0
			for _, c := range d {
				if t.order(c) == 0 {
					unsorted()
				}
				add(c, change)
				change = 1
			}
		}
		unsorted()
		if composing {
			edits = recompose(edits, t)
		}
		p.changeAll(edits, 0, places)
		return nil
	}
}

// stableByOrder sorts a run of marks; hostile texts have long ones.
func stableByOrder(edits []edit, orders []uint8) {
	if len(edits) < 2 {
		return
	}
	var counts [257]int
	for _, o := range orders {
		counts[int(o)+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	sortedEdits, sortedOrders := make([]edit, len(edits)), make([]uint8, len(edits))
	for i, o := range orders {
		at := counts[o]
		counts[o]++
		sortedEdits[at], sortedOrders[at] = edits[i], o
	}
	copy(edits, sortedEdits)
	copy(orders, sortedOrders)
}

func recompose(in []edit, t *charactersTable) []edit {
	out := in[:0:len(in)]
	starter := -1
	var last uint8
	for _, e := range in {
		of := t.order(e.r)
		if starter >= 0 && (starter == len(out)-1 || last != 0 && last < of) {
			if r, ok := compose(out[starter].r, e.r); ok {
				out[starter].r = r
				out[starter].change += e.change - 1
				continue
			}
		}
		out = append(out, e)
		if of == 0 {
			starter = len(out) - 1
		}
		last = of
	}
	return out
}

type bertNormalizer struct {
	Type    string `json:"type"`
	Clean   bool   `json:"clean_text" exact:"required"`
	Chinese bool   `json:"handle_chinese_chars" exact:"required"`
	Accents *bool  `json:"strip_accents"`
	Lower   bool   `json:"lowercase" exact:"required"`
}

func chinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F ||
		r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF || r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

func (b bertNormalizer) ascii(p *span) {
	out := make([]byte, 0, len(p.s))
	for i := range len(p.s) {
		c := p.s[i]
		switch {
		case b.Clean && (c == '\t' || c == '\n' || c == '\r'):
			c = ' '
		case b.Clean && (c < ' ' || c == 0x7f):
			continue
		case b.Lower && c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	p.s = string(out)
}

func (b bertNormalizer) normalize(p *span, places bool) error {
	if !places && isASCII(p.s) {
		b.ascii(p)
		return nil
	}
	t := characters()
	if b.Clean {
		p.filter(func(r rune) bool { return r != 0 && r != 0xfffd && !t.is(r, control) }, places)
		edits := make([]edit, 0, len(p.s))
		for _, r := range p.s {
			if t.is(r, space) {
				r = ' '
			}
			edits = append(edits, edit{r: r})
		}
		p.changeAll(edits, 0, places)
	}
	if b.Chinese && strings.ContainsFunc(p.s, chinese) {
		edits := make([]edit, 0, len(p.s))
		for _, r := range p.s {
			if chinese(r) {
				edits = append(edits, edit{' ', 0}, edit{r, 1}, edit{' ', 1})
			} else {
				edits = append(edits, edit{r: r})
			}
		}
		p.changeAll(edits, 0, places)
	}
	if b.Accents != nil && *b.Accents || b.Accents == nil && b.Lower {
		if err := decompose(false, false)(p, places); err != nil {
			return err
		}
		p.filter(func(r rune) bool { return !t.is(r, mark) }, places)
	}
	if b.Lower {
		return lowercase(p, places)
	}
	return nil
}

func strip(left, right bool) normalizer {
	return func(p *span, places bool) error {
		isSpace := func(r rune) bool { return characters().is(r, space) }
		s := p.s
		if left {
			s = strings.TrimLeftFunc(s, isSpace)
		}
		from := len(p.s) - len(s)
		if right {
			s = strings.TrimRightFunc(s, isSpace)
		}
		if len(s) < len(p.s) {
			if places {
				p.placed()
				p.at = p.at[from : from+len(s)]
			}
			p.s = s
		}
		return nil
	}
}

func stripAccents(p *span, places bool) error {
	p.filter(func(r rune) bool { return !characters().is(r, accent) }, places)
	return nil
}

func nmt(p *span, places bool) error {
	p.filter(func(r rune) bool {
		return !(r >= 1 && r <= 8 || r == 0xb || r >= 0xe && r <= 0x1f || r == 0x7f || r == 0x8f || r == 0x9f)
	}, places)
	edits := make([]edit, 0, len(p.s))
	for _, r := range p.s {
		switch {
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
			r = ' '
		}
		edits = append(edits, edit{r: r})
	}
	p.changeAll(edits, 0, places)
	return nil
}

func byteLetters(p *span, places bool) error {
	edits := make([]edit, 0, len(p.s))
	for i := range len(p.s) {
		change := 1
		if utf8.RuneStart(p.s[i]) {
			change = 0
		}
		edits = append(edits, edit{letters[p.s[i]], change})
	}
	p.changeAll(edits, 0, places)
	return nil
}

func replaceAll(of *pattern, content string) normalizer {
	return func(p *span, places bool) error {
		matches, err := of.matches(nil, p.s, p.steps)
		if err != nil {
			return fmt.Errorf("text: the normalizer Replace: %w", err)
		}
		if before := len(p.s); before+len(matches)*len(content) > mostGrowth*before+growAnyway {
			return fmt.Errorf("text: the normalizer Replace makes more than %d bytes of %d", mostGrowth*before+growAnyway, before)
		}
		p.replace(matches, content, places)
		return nil
	}
}

// charsmap is sentencepiece's compiled normalization: a double array (Yata et al. 2007) over bytes. Its values are
// places of texts.
type charsmap struct {
	units []uint32
	texts string
}

func readCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) < 4 {
		return nil, fmt.Errorf("the compiled characters have %d bytes, expected 4 or more", len(blob))
	}
	size := int64(binary.LittleEndian.Uint32(blob))
	if size%4 != 0 || size == 0 || size > int64(len(blob)-4) {
		return nil, fmt.Errorf("the compiled characters have a table of %d bytes in %d, expected whole units", size, len(blob)-4)
	}
	m := &charsmap{units: make([]uint32, size/4), texts: string(blob[4+size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	if !utf8.ValidString(m.texts) {
		return nil, fmt.Errorf("the compiled characters are not valid UTF-8")
	}
	for of := range strings.SplitSeq(m.texts, "\x00") {
		if len(of) > longestName {
			return nil, fmt.Errorf("the compiled characters have a text of %d bytes, expected at most %d", len(of), longestName)
		}
	}
	return m, nil
}

func (m *charsmap) prefixes(s string, found func(length int, text string) (more bool)) {
	offset := func(u uint32) int { return int(u >> 10 << (u & (1 << 9) >> 6)) }
	node := offset(m.units[0])
	for i := range len(s) {
		if s[i] == 0 {
			return
		}
		if node ^= int(s[i]); node >= len(m.units) {
			return
		}
		u := m.units[node]
		if u&(1<<31|0xff) != uint32(s[i]) {
			return
		}
		if node ^= offset(u); node >= len(m.units) {
			return
		}
		if u>>8&1 == 1 {
			value := int(m.units[node] & (1<<31 - 1))
			if value > len(m.texts) {
				return
			}
			text, _, _ := strings.Cut(m.texts[value:], "\x00")
			if !found(i+1, text) {
				return
			}
		}
	}
}

// transform is for the shortest prefix of s, as tokenizers.
func (m *charsmap) transform(s string) (text string, ok bool) {
	m.prefixes(s, func(_ int, of string) bool {
		text, ok = of, true
		return false
	})
	return text, ok
}

func (m *charsmap) normalize(p *span, places bool) error {
	edits := make([]edit, 0, len(p.s))
	changed := false
	replace := func(old, by string) {
		before, n := utf8.RuneCountInString(old), utf8.RuneCountInString(by)
		changed = true
		for i, r := range []rune(by) {
			change := 0
			if i >= before {
				change = 1
			}
			edits = append(edits, edit{r, change})
		}
		if n < before && len(edits) > 0 {
			edits[len(edits)-1].change += n - before
		}
	}
	for s := p.s; s != ""; {
		if len(edits) > mostGrowth*len(p.s)+growAnyway {
			return fmt.Errorf("text: the normalizer Precompiled makes more than %d bytes of %d", mostGrowth*len(p.s)+growAnyway, len(p.s))
		}
		const mostWhole = 5
		n := grapheme(s, mostWhole)
		if n <= mostWhole {
			if by, ok := m.transform(s[:n]); ok {
				replace(s[:n], by)
				s = s[n:]
				continue
			}
		}
		_, n = utf8.DecodeRuneInString(s) // those of a longer grapheme begin no shorter ones
		whole := n
		if of := grapheme(s, len(s)); of > n {
			whole = of
		}
		for part := s[:whole]; part != ""; part = part[n:] {
			var r rune
			r, n = utf8.DecodeRuneInString(part)
			if by, ok := m.transform(part[:n]); ok {
				replace(part[:n], by)
			} else {
				edits = append(edits, edit{r: r})
			}
		}
		s = s[whole:]
	}
	if !changed {
		return nil
	}
	before := len(p.s)
	p.changeAll(edits, 0, places)
	return grown(before, len(p.s), "normalizer Precompiled")
}

// grapheme returns the length of the first extended grapheme cluster (Unicode annex 29), or one above most. Flags,
// joined emoji and Indic conjuncts are longer than any that is mapped as a whole.
func grapheme(s string, most int) int {
	t := characters()
	r, n := utf8.DecodeRuneInString(s)
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	for n < len(s) && n <= most {
		next, width := utf8.DecodeRuneInString(s[n:])
		before, after := t.of(r), t.of(next)
		switch {
		case before&breaks != 0 || after&breaks != 0:
			return n
		case after&extends != 0 || before&prepends != 0 || syllable(r, next):
		default:
			return n
		}
		r, n = next, n+width
	}
	return n
}

func syllable(a, b rune) bool {
	l := func(r rune) bool { return r >= 0x1100 && r <= 0x115f || r >= 0xa960 && r <= 0xa97c }
	v := func(r rune) bool { return r >= 0x1160 && r <= 0x11a7 || r >= 0xd7b0 && r <= 0xd7c6 }
	t := func(r rune) bool { return r >= 0x11a8 && r <= 0x11ff || r >= 0xd7cb && r <= 0xd7fb }
	block := func(r rune) bool { return r >= 0xac00 && r <= 0xd7a3 }
	open := block(a) && (a-0xac00)%28 == 0
	return l(a) && (l(b) || v(b) || block(b)) || (open || v(a)) && (v(b) || t(b)) || (block(a) || t(a)) && t(b)
}
