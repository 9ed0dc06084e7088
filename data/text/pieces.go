package text

import (
	"strings"
	"unicode/utf8"
)

type splitter interface {
	split(e *encoder, p *span, out []span) ([]span, error)
}

type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

type segment struct {
	from, to int
	match    bool
}

func (e *encoder) divide(p *span, matches [][2]int, inverted bool, by behavior, out []span) []span {
	all := e.segments[:0]
	last := 0
	for _, m := range matches {
		if last < m[0] {
			all = append(all, segment{last, m[0], inverted})
		}
		all = append(all, segment{m[0], m[1], !inverted})
		last = m[1]
	}
	if last < len(p.s) {
		all = append(all, segment{last, len(p.s), inverted})
	}
	e.segments = all
	switch by {
	case contiguous:
		all = joined(all, func(before, s segment) bool { return before.match == s.match })
	case mergedWithPrevious:
		all = joined(all, func(before, s segment) bool { return s.match && !before.match })
	case mergedWithNext:
		kept := len(all)
		matched := false
		for i := len(all) - 1; i >= 0; i-- {
			s := all[i]
			if s.match && !matched && kept < len(all) {
				all[kept].from = s.from
			} else {
				kept--
				all[kept] = s
			}
			matched = s.match
		}
		all = all[kept:]
	}
	for _, s := range all {
		if s.from < s.to && (by != removed || !s.match) {
			out = append(out, p.slice(s.from, s.to))
		}
	}
	return out
}

func joined(all []segment, join func(before, s segment) bool) []segment {
	kept := all[:0]
	before := segment{}
	for _, s := range all {
		if len(kept) > 0 && join(before, s) {
			kept[len(kept)-1].to = s.to
		} else {
			kept = append(kept, s)
		}
		before = s
	}
	return kept
}

type byRune struct {
	is func(r rune) bool
	by behavior
}

func (c byRune) split(e *encoder, p *span, out []span) ([]span, error) {
	e.matches = e.matches[:0]
	for i := 0; i < len(p.s); {
		r, n := rune(p.s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(p.s[i:])
		}
		if c.is(r) {
			e.matches = append(e.matches, [2]int{i, i + n})
		}
		i += n
	}
	return e.divide(p, e.matches, false, c.by, out), nil
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r >= '\t' && r <= '\r'
	}
	return characters().is(r, space)
}

func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && !(r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
	}
	return characters().is(r, punctuation)
}

func isNumeric(r rune) bool { return characters().is(r, numeric) }

type words struct{}

func (words) split(e *encoder, p *span, out []span) ([]span, error) {
	begin, was := 0, 0
	for i, r := range p.s + " " {
		kind := 0
		switch of := characters().of(r); {
		case of&wordRust != 0:
			kind = 1
		case of&space == 0:
			kind = 2
		}
		if kind != was || i == len(p.s) {
			if was != 0 {
				out = append(out, p.slice(begin, i))
			}
			begin, was = i, kind
		}
	}
	return out, nil
}

type byPattern struct {
	of       *pattern
	inverted bool
	by       behavior
}

func (b byPattern) split(e *encoder, p *span, out []span) (_ []span, err error) {
	if e.matches, err = b.of.matches(e.matches[:0], p.s, p.steps); err != nil {
		return nil, err
	}
	return e.divide(p, e.matches, b.inverted, b.by, out), nil
}

type metaspace struct {
	mark   string
	scheme string
	cuts   bool
}

func (m metaspace) split(e *encoder, p *span, out []span) ([]span, error) {
	e.matches = e.matches[:0]
	for i := range len(p.s) {
		if p.s[i] == ' ' {
			e.matches = append(e.matches, [2]int{i, i + 1})
		}
	}
	p.replace(e.matches, m.mark, e.places)
	if !strings.HasPrefix(p.s, m.mark) && (m.scheme == "always" || m.scheme == "first" && p.begin == 0) {
		p.prepend(m.mark, e.places)
	}
	if !m.cuts {
		return append(out, *p), nil
	}
	e.matches = e.matches[:0]
	for i := 0; ; {
		n := strings.Index(p.s[i:], m.mark)
		if n < 0 {
			break
		}
		i += n
		e.matches = append(e.matches, [2]int{i, i + len(m.mark)})
		i += len(m.mark)
	}
	return e.divide(p, e.matches, false, mergedWithNext, out), nil
}

type leadingSpace struct{}

func (leadingSpace) split(e *encoder, p *span, out []span) ([]span, error) {
	if !strings.HasPrefix(p.s, " ") {
		p.prepend(" ", e.places)
	}
	return append(out, *p), nil
}

type toBytes struct{}

func (toBytes) split(e *encoder, p *span, out []span) ([]span, error) {
	_ = byteLetters(p, e.places)
	return append(out, *p), nil
}
