package text

import (
	"unicode/utf8"
)

type span struct {
	s     string
	at    []place // of each byte in the original; nil: the original from begin on, or without places
	begin int
	id    int32 // of an added token, or -1
	steps *int  // further steps of patterns for the whole text, beyond those by its length; nil for a text alone
}

type place struct{ begin, end int32 }

type edit struct {
	r      rune
	change int
}

func (p *span) placed() {
	if p.at != nil {
		return
	}
	p.at = make([]place, len(p.s))
	for i := 0; i < len(p.s); {
		_, n := utf8.DecodeRuneInString(p.s[i:])
		of := place{int32(p.begin + i), int32(p.begin + i + n)}
		for ; n > 0; n-- {
			p.at[i] = of
			i++
		}
	}
}

func (p *span) change(from, to int, edits []edit, removed int, places bool) {
	n := 0
	for _, e := range edits {
		n += utf8.RuneLen(e.r)
	}
	out := make([]byte, 0, from+n+len(p.s)-to)
	out = append(out, p.s[:from]...)
	var at []place
	if places {
		p.placed()
		at = append(make([]place, 0, cap(out)), p.at[:from]...)
	}
	next := from
	skip := func(characters int) {
		for ; characters > 0 && next < to; characters-- {
			_, n := utf8.DecodeRuneInString(p.s[next:])
			next += n
		}
	}
	skip(removed)
	for _, e := range edits {
		if places {
			of := place{int32(p.begin), int32(p.begin)}
			if e.change <= 0 && next < len(p.at) {
				of = p.at[next]
			} else if next > 0 {
				of = p.at[next-1]
			}
			for range utf8.RuneLen(e.r) {
				at = append(at, of)
			}
		}
		out = utf8.AppendRune(out, e.r)
		if e.change <= 0 {
			skip(1 - e.change)
		}
	}
	if places {
		p.at = append(at, p.at[to:]...)
	}
	p.s = string(append(out, p.s[to:]...))
}

func (p *span) changeAll(edits []edit, removed int, places bool) {
	p.change(0, len(p.s), edits, removed, places)
}

func (p *span) filter(keep func(r rune) bool, places bool) {
	gone := false
	for _, r := range p.s {
		if !keep(r) {
			gone = true
			break
		}
	}
	if !gone {
		return
	}
	var edits []edit
	removed, first := 0, 0
	for _, r := range p.s {
		switch {
		case !keep(r):
			removed++
			continue
		case len(edits) == 0:
			first = removed
		default:
			edits[len(edits)-1].change = -removed
		}
		removed = 0
		edits = append(edits, edit{r: r})
	}
	if len(edits) > 0 {
		edits[len(edits)-1].change = -removed
	}
	p.changeAll(edits, first, places)
}

func (p *span) prepend(s string, places bool) {
	if p.s == "" || s == "" {
		return
	}
	if !places {
		p.s = s + p.s
		return
	}
	p.placed()
	at := make([]place, 0, len(s)+len(p.at))
	for range len(s) {
		at = append(at, p.at[0])
	}
	p.s, p.at = s+p.s, append(at, p.at...)
}

func (p *span) replace(matches [][2]int, content string, places bool) {
	if len(matches) == 0 {
		return
	}
	if places {
		p.placed()
	}
	var out []byte
	var at []place
	last := 0
	for _, m := range matches {
		out = append(append(out, p.s[last:m[0]]...), content...)
		if places {
			of := place{int32(p.begin), int32(p.begin)}
			if m[1] > 0 {
				of = p.at[m[1]-1]
			}
			at = append(at, p.at[last:m[0]]...)
			for range len(content) {
				at = append(at, of)
			}
		}
		last = m[1]
	}
	p.s = string(append(out, p.s[last:]...))
	if places {
		p.at = append(at, p.at[last:]...)
	}
}

func (p *span) slice(from, to int) span {
	out := span{s: p.s[from:to], begin: p.begin + from, id: -1, steps: p.steps}
	if p.at != nil {
		out.at = p.at[from:to:to]
		out.begin = p.begin
		if to > from {
			out.begin = int(p.at[from].begin)
		}
	}
	return out
}

func (p *span) original(from, to int) [2]int {
	switch {
	case from >= to || to > len(p.s):
		return [2]int{p.begin + from, p.begin + to}
	case p.at != nil:
		return [2]int{int(p.at[from].begin), int(p.at[to-1].end)}
	}
	for from > 0 && from < len(p.s) && !utf8.RuneStart(p.s[from]) {
		from--
	}
	for to < len(p.s) && !utf8.RuneStart(p.s[to]) {
		to++
	}
	return [2]int{p.begin + from, p.begin + to}
}
