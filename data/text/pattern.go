package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/listed"
)

// pattern is a regular expression as Oniguruma's, with lookahead, on any bytes. Go's regexp has its own Unicode.
type pattern struct {
	start *instruction
	loops int
	gpt2  bool
}

type charset struct {
	ascii   [utf8.RuneSelf]bool
	not     bool
	any     property
	none    []property
	ranges  [][2]rune
	within  []*charset
	folding bool
}

func (c *charset) has(r rune) bool {
	if r < utf8.RuneSelf {
		return c.ascii[r]
	}
	return c.slow(r)
}

func (c *charset) slow(r rune) bool {
	if c.one(r) {
		return !c.not
	}
	if c.folding {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if c.one(other) {
				return !c.not
			}
		}
	}
	return c.not
}

func (c *charset) one(r rune) bool {
	of := characters().of(r)
	if of&c.any != 0 {
		return true
	}
	for _, p := range c.none {
		if of&p == 0 {
			return true
		}
	}
	for _, b := range c.ranges {
		if r >= b[0] && r <= b[1] {
			return true
		}
	}
	for _, inner := range c.within {
		if inner.has(r) {
			return true
		}
	}
	return false
}

func (c *charset) made() *charset {
	for i := range c.ascii {
		c.ascii[i] = c.slow(rune(i))
	}
	return c
}

type expression struct {
	set              *charset
	alternatives     []*expression
	sequence         bool
	min, max         int // repeats alternatives[0]
	repeated         bool
	lazy, possessive bool
	look             byte // '=', '!': lookahead; '<', 'n': lookbehind of one character
	at               byte
}

const (
	mostPattern      = 10_000
	mostNesting      = 50
	mostRepeat       = 1000
	mostInstructions = 20_000
)

type patternReader struct {
	s       string
	folding bool
	nesting int
}

func readPattern(s string) (*pattern, error) {
	if len(s) > mostPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, expected at most %d", len(s), mostPattern)
	}
	if s == `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` {
		return &pattern{gpt2: true}, nil
	}
	r := patternReader{s: s}
	e, err := r.alternatives()
	if err == nil && r.s != "" {
		err = fmt.Errorf("a bracket too many")
	}
	if err == nil {
		p := &pattern{}
		m := maker{pattern: p}
		if p.start = m.make(e, nil); m.made <= mostInstructions {
			return p, nil
		}
		err = fmt.Errorf("it has too many repetitions")
	}
	return nil, fmt.Errorf("the pattern %s: %w at byte %d: this part of Oniguruma's syntax is not supported", listed.Quoted(s), err, len(s)-len(r.s))
}

func literalPattern(s string) *pattern {
	e := &expression{sequence: true}
	for _, r := range s {
		e.alternatives = append(e.alternatives, one(r, false))
	}
	p := &pattern{}
	p.start = (&maker{pattern: p}).make(e, nil)
	return p
}

func one(r rune, folding bool) *expression {
	return &expression{set: (&charset{ranges: [][2]rune{{r, r}}, folding: folding}).made()}
}

func (r *patternReader) next() rune {
	c, n := utf8.DecodeRuneInString(r.s)
	r.s = r.s[n:]
	return c
}

func (r *patternReader) take(prefix string) bool {
	rest, ok := strings.CutPrefix(r.s, prefix)
	if ok {
		r.s = rest
	}
	return ok
}

func (r *patternReader) alternatives() (*expression, error) {
	if r.nesting++; r.nesting > mostNesting {
		return nil, fmt.Errorf("too many brackets in brackets")
	}
	defer func() { r.nesting-- }()
	folding := r.folding
	defer func() { r.folding = folding }()
	all := &expression{}
	for {
		e, err := r.sequence()
		if err != nil {
			return nil, err
		}
		all.alternatives = append(all.alternatives, e)
		if !r.take("|") {
			return all, nil
		}
	}
}

var foldedTogether = []string{"ss", "ff", "fi", "fl", "st"}

func (r *patternReader) sequence() (*expression, error) {
	e := &expression{sequence: true}
	letters := ""
	for r.s != "" && r.s[0] != '|' && r.s[0] != ')' {
		begin := r.s
		x, err := r.atom()
		if err != nil {
			return nil, err
		}
		if r.folding && len(begin) == len(r.s)+1 {
			letters += strings.ToLower(begin[:1])
			for _, two := range foldedTogether {
				if strings.HasSuffix(letters, two) {
					return nil, fmt.Errorf("%q without case, which one character may match,", two)
				}
			}
		} else {
			letters = ""
		}
		if x, err = r.repetition(x); err != nil {
			return nil, err
		}
		e.alternatives = append(e.alternatives, x)
	}
	return e, nil
}

func (r *patternReader) repetition(x *expression) (*expression, error) {
	for r.s != "" {
		out := &expression{alternatives: []*expression{x}, repeated: true, max: -1}
		interval := false
		switch r.s[0] {
		case '*':
		case '+':
			out.min = 1
		case '?':
			out.max = 1
		case '{':
			end := strings.IndexByte(r.s, '}')
			if end < 0 {
				return x, nil
			}
			least, most, list := strings.Cut(r.s[1:end], ",")
			if _, err := fmt.Sscanf("0"+least, "%d", &out.min); err != nil || strings.Trim(least+most, "0123456789") != "" || least+most == "" || len(least+most) > 8 {
				return nil, fmt.Errorf("braces without numbers")
			}
			if out.max = out.min; list {
				out.max = -1
				if most != "" {
					_, _ = fmt.Sscanf(most, "%d", &out.max)
				}
			}
			if out.min > mostRepeat || out.max > mostRepeat || out.max >= 0 && out.max < out.min {
				return nil, fmt.Errorf("numbers in braces above %d, or in another order,", mostRepeat)
			}
			r.s, interval = r.s[end:], true
		default:
			return x, nil
		}
		r.s = r.s[1:]
		switch {
		case interval && r.s != "" && (r.s[0] == '+' || r.s[0] == '?'):
			return nil, fmt.Errorf("a %q after braces", r.s[:1])
		case r.take("?"):
			out.lazy = true
		case r.take("+"):
			out.possessive = true
		}
		if x.at != 0 || x.look != 0 {
			return nil, fmt.Errorf("a repetition of a place")
		}
		x = out
	}
	return x, nil
}

func (r *patternReader) atom() (*expression, error) {
	switch c := r.next(); c {
	case '(':
		folding := r.folding
		e := &expression{}
		switch {
		case r.take("?:"):
		case r.take("?i:"):
			r.folding = true
		case r.take("?>"):
			return nil, fmt.Errorf("an atomic group")
		case r.take("?="):
			e.look = '='
		case r.take("?!"):
			e.look = '!'
		case r.take("?<="):
			e.look = '<'
		case r.take("?<!"):
			e.look = 'n'
		case r.take("?i)"):
			r.folding = true
			return &expression{sequence: true}, nil
		case strings.HasPrefix(r.s, "?"):
			return nil, fmt.Errorf("a group of another kind")
		}
		inner, err := r.alternatives()
		r.folding = folding
		if err != nil {
			return nil, err
		}
		if !r.take(")") {
			return nil, fmt.Errorf("a bracket too few")
		}
		if e.look == 0 {
			return inner, nil
		}
		if e.look == '<' || e.look == 'n' {
			if e.set = single(inner); e.set == nil {
				return nil, fmt.Errorf("a lookbehind of more than one character")
			}
		}
		e.alternatives = []*expression{inner}
		return e, nil
	case '[':
		set, err := r.class()
		return &expression{set: set}, err
	case '.':
		return &expression{set: (&charset{ranges: [][2]rune{{'\n', '\n'}}, not: true}).made()}, nil
	case '^', '$':
		return &expression{at: byte(c)}, nil
	case '*', '+', '?':
		return nil, fmt.Errorf("a repetition of nothing")
	case '\\':
		if r.s != "" && strings.ContainsRune("AzZ", rune(r.s[0])) {
			return &expression{at: byte(r.next())}, nil
		}
		set, literal, err := r.escape()
		if err != nil || set != nil {
			return &expression{set: set}, err
		}
		return one(literal, r.folding), nil
	default:
		return one(c, r.folding), nil
	}
}

func single(e *expression) *charset {
	for e.set == nil {
		if len(e.alternatives) != 1 || e.repeated || e.look != 0 || e.at != 0 {
			return nil
		}
		e = e.alternatives[0]
	}
	return e.set
}

var classes = map[string]property{"Han": han, "Hiragana": hiragana, "Katakana": katakana, "Hangul": hangul, "Thai": thai, "Upper": upper, "Lower": lower,
	"Space": space, "Digit": digit, "Word": word}

func (r *patternReader) escape() (*charset, rune, error) {
	if r.s == "" {
		return nil, 0, fmt.Errorf("a backslash at the end")
	}
	c := r.next()
	switch c {
	case 's', 'w', 'd':
		return (&charset{any: map[rune]property{'s': space, 'w': word, 'd': digit}[c]}).made(), 0, nil
	case 'S', 'W', 'D':
		return (&charset{any: map[rune]property{'S': space, 'W': word, 'D': digit}[c], not: true}).made(), 0, nil
	case 'p', 'P':
		name, rest, ok := strings.Cut(strings.TrimPrefix(r.s, "{"), "}")
		if !ok || !strings.HasPrefix(r.s, "{") {
			return nil, 0, fmt.Errorf("a property without braces")
		}
		r.s = rest
		bare, not := strings.CutPrefix(name, "^")
		p, known := classes[bare]
		if !known && (len(bare) == 1 || slices.Contains(categories, bare)) {
			p = categorySet(bare)
		}
		if p == 0 {
			return nil, 0, fmt.Errorf("the property %s", listed.Quoted(name))
		}
		return (&charset{any: p, not: not != (c == 'P')}).made(), 0, nil
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 't':
		return nil, '\t', nil
	case 'f':
		return nil, '\f', nil
	case 'v':
		return nil, '\v', nil
	case 'u', 'x':
		digits := ""
		switch {
		case c == 'u' && len(r.s) >= 4:
			digits, r.s = r.s[:4], r.s[4:]
		case c == 'x' && strings.HasPrefix(r.s, "{"):
			digits, r.s, _ = strings.Cut(r.s[1:], "}")
		case c == 'x' && len(r.s) >= 2:
			digits, r.s = r.s[:2], r.s[2:]
		}
		var code rune
		if n, err := fmt.Sscanf(digits, "%x", &code); n != 1 || err != nil || len(digits) > 6 || strings.Trim(digits, "0123456789abcdefABCDEF") != "" || !utf8.ValidRune(code) ||
			c == 'x' && len(digits) == 2 && code >= utf8.RuneSelf {
			return nil, 0, fmt.Errorf("the character \\%c%s", c, listed.Quoted(digits))
		}
		return nil, code, nil
	}
	if c < utf8.RuneSelf && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
		return nil, 0, fmt.Errorf("the escape \\%c", c)
	}
	return nil, c, nil
}

func (r *patternReader) class() (*charset, error) {
	if r.nesting++; r.nesting > mostNesting {
		return nil, fmt.Errorf("too many brackets in brackets")
	}
	defer func() { r.nesting-- }()
	set := &charset{not: r.take("^"), folding: r.folding}
	for first := true; ; first = false {
		if r.s == "" {
			return nil, fmt.Errorf("a bracket too few")
		}
		if strings.HasPrefix(r.s, "[:") || strings.HasPrefix(r.s, "&&") {
			return nil, fmt.Errorf("%q in a class", r.s[:2])
		}
		var literal rune
		switch c := r.next(); {
		case c == ']' && !first:
			return set.made(), nil
		case c == '[':
			inner, err := r.class()
			if err != nil {
				return nil, err
			}
			set.within = append(set.within, inner)
			continue
		case c == '\\':
			inner, escaped, err := r.escape()
			if err != nil {
				return nil, err
			}
			if inner != nil {
				if inner.not {
					set.none = append(set.none, inner.any)
				} else {
					set.any |= inner.any
				}
				continue
			}
			literal = escaped
		default:
			literal = c
		}
		last := literal
		if len(r.s) > 1 && r.s[0] == '-' && r.s[1] != ']' {
			r.next()
			switch c := r.next(); c {
			case '\\':
				inner, escaped, err := r.escape()
				if err != nil {
					return nil, err
				}
				if inner != nil {
					return nil, fmt.Errorf("a range to a class")
				}
				last = escaped
			case '[':
				return nil, fmt.Errorf("a range to a class")
			default:
				last = c
			}
		}
		if last < literal {
			return nil, fmt.Errorf("a range in another order")
		}
		set.ranges = append(set.ranges, [2]rune{literal, last})
	}
}

type operation byte

const (
	matchSet operation = iota
	matchRun
	choose
	loop
	lookAhead
	lookNotAhead
	lookBehind
	lookNotBehind
	placed
)

type instruction struct {
	do               operation
	set              *charset
	min, max         int
	lazy, possessive bool
	branches         []*instruction
	firsts           []*[utf8.RuneSelf + 1]bool
	at               byte
	loop             int
	next             *instruction
}

type maker struct {
	*pattern
	made int
}

func (m *maker) make(e *expression, next *instruction) *instruction {
	if m.made++; m.made > mostInstructions {
		return next
	}
	switch {
	case e.look != 0:
		i := &instruction{do: map[byte]operation{'=': lookAhead, '!': lookNotAhead, '<': lookBehind, 'n': lookNotBehind}[e.look], set: e.set, next: next}
		if e.set == nil {
			i.branches = []*instruction{m.make(e.alternatives[0], nil)}
		}
		return i
	case e.set != nil:
		return &instruction{do: matchSet, set: e.set, next: next}
	case e.at != 0:
		return &instruction{do: placed, at: e.at, next: next}
	case e.repeated:
		return m.repeat(e, next)
	case e.sequence:
		for i := len(e.alternatives) - 1; i >= 0; i-- {
			next = m.make(e.alternatives[i], next)
		}
		return next
	case len(e.alternatives) == 1:
		return m.make(e.alternatives[0], next)
	}
	c := &instruction{do: choose}
	for _, a := range e.alternatives {
		b := m.make(a, next)
		c.branches = append(c.branches, b)
		c.firsts = append(c.firsts, firsts(b))
	}
	return c
}

func (m *maker) repeat(e *expression, next *instruction) *instruction {
	if set := single(e.alternatives[0]); set != nil {
		return &instruction{do: matchRun, set: set, min: e.min, max: e.max, lazy: e.lazy, possessive: e.possessive, next: next}
	}
	if e.possessive {
		m.made = mostInstructions + 1
		return next
	}
	if e.max < 0 {
		l := &instruction{do: loop, loop: m.loops, lazy: e.lazy, next: next}
		m.loops++
		l.branches = []*instruction{m.make(e.alternatives[0], l)}
		next = l
	} else {
		after := next
		for range e.max - e.min {
			next = &instruction{do: choose, branches: func() []*instruction {
				body := m.make(e.alternatives[0], next)
				if e.lazy {
					return []*instruction{after, body}
				}
				return []*instruction{body, after}
			}()}
			next.firsts = make([]*[utf8.RuneSelf + 1]bool, 2)
		}
	}
	for range e.min {
		next = m.make(e.alternatives[0], next)
	}
	return next
}

func firsts(i *instruction) *[utf8.RuneSelf + 1]bool {
	var out [utf8.RuneSelf + 1]bool
	for ; i != nil && (i.do == matchSet || i.do == matchRun); i = i.next {
		for c, has := range i.set.ascii {
			out[c] = out[c] || has
		}
		out[utf8.RuneSelf] = true
		if i.do == matchSet || i.min > 0 {
			return &out
		}
	}
	return nil
}

type matcher struct {
	s     string
	steps int
	depth int
	loops []int
	most  int
	fault error
}

const (
	mostDepth      = 10_000
	stepsPerByte   = 200
	stepsAnyway    = 1_000_000
	noMatch        = -1
	patternTooSlow = "the pattern takes more than %d steps for a text of %d bytes"
)

func (m *matcher) run(i *instruction, at int) int {
	if m.depth++; m.depth > mostDepth {
		m.fault = fmt.Errorf("the pattern repeats a group more than %d times", mostDepth)
	}
	defer func() { m.depth-- }()
	for i != nil {
		if m.steps++; m.steps > m.most && m.fault == nil {
			m.fault = fmt.Errorf(patternTooSlow, m.steps-1, len(m.s))
		}
		if m.fault != nil {
			return noMatch
		}
		switch i.do {
		case matchSet:
			n := m.character(i.set, at)
			if n == 0 {
				return noMatch
			}
			at += n
		case matchRun:
			end, count := at, 0
			if i.lazy {
				for {
					if count >= i.min {
						if got := m.run(i.next, end); got >= 0 || m.fault != nil {
							return got
						}
					}
					n := 0
					if count != i.max {
						n = m.character(i.set, end)
					}
					if n == 0 {
						return noMatch
					}
					end, count = end+n, count+1
				}
			}
			for count != i.max {
				n := m.character(i.set, end)
				if n == 0 {
					break
				}
				end, count = end+n, count+1
			}
			m.steps += count / 8
			if count < i.min {
				return noMatch
			}
			if i.next != nil && !i.possessive {
				for ; count > i.min; count-- {
					if got := m.run(i.next, end); got >= 0 || m.fault != nil {
						return got
					}
					_, n := utf8.DecodeLastRuneInString(m.s[at:end])
					end -= n
				}
			}
			at = end
		case choose:
			first := utf8.RuneSelf
			if at < len(m.s) && m.s[at] < utf8.RuneSelf {
				first = int(m.s[at])
			}
			for k, b := range i.branches {
				if f := i.firsts[k]; f != nil && (at == len(m.s) || !f[first]) {
					continue
				}
				if got := m.run(b, at); got >= 0 || m.fault != nil {
					return got
				}
			}
			return noMatch
		case loop:
			began := m.loops[i.loop]
			if began == at {
				i = i.next
				continue
			}
			if i.lazy {
				if got := m.run(i.next, at); got >= 0 || m.fault != nil {
					return got
				}
			}
			m.loops[i.loop] = at
			got := m.run(i.branches[0], at)
			m.loops[i.loop] = began
			if got >= 0 || m.fault != nil || i.lazy {
				return got
			}
		case lookAhead, lookNotAhead:
			if (m.run(i.branches[0], at) >= 0) != (i.do == lookAhead) || m.fault != nil {
				return noMatch
			}
		case lookBehind, lookNotBehind:
			r, n := utf8.DecodeLastRuneInString(m.s[:at])
			if (n > 0 && i.set.has(r)) != (i.do == lookBehind) {
				return noMatch
			}
		case placed:
			ok := at == 0
			switch i.at {
			case '^':
				ok = at == 0 || m.s[at-1] == '\n' && at < len(m.s)
			case '$':
				ok = at == len(m.s) || m.s[at] == '\n'
			case 'Z':
				ok = at == len(m.s) || at == len(m.s)-1 && m.s[at] == '\n'
			case 'z':
				ok = at == len(m.s)
			}
			if !ok {
				return noMatch
			}
		}
		i = i.next
	}
	return at
}

func (m *matcher) character(set *charset, at int) int {
	if at >= len(m.s) {
		return 0
	}
	if c := m.s[at]; c < utf8.RuneSelf {
		if set.ascii[c] {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(m.s[at:])
	if set.slow(r) {
		return n
	}
	return 0
}

// matches appends each match, as Oniguruma's find_iter. steps may be those of several texts.
func (p *pattern) matches(out [][2]int, s string, steps *int) ([][2]int, error) {
	if p.gpt2 {
		for at := 0; at < len(s); {
			n := piece(s[at:])
			out = append(out, [2]int{at, at + n})
			at += n
		}
		return out, nil
	}
	if s == "" {
		return out, nil
	}
	if steps == nil {
		own := stepsAnyway
		steps = &own
	}
	m := matcher{s: s, loops: make([]int, p.loops), most: *steps + stepsPerByte*len(s)}
	defer func() { *steps -= max(m.steps-stepsPerByte*len(s), 0) }()
	last := -1
	for at := 0; at <= len(s); {
		for i := range m.loops {
			m.loops[i] = -1
		}
		end := m.run(p.start, at)
		if m.fault != nil {
			return nil, m.fault
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		switch {
		case end < 0 || end == at && last == at:
			at += max(n, 1)
		default:
			out = append(out, [2]int{at, end})
			at, last = end, end
		}
	}
	return out, nil
}
