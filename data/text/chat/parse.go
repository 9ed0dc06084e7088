package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type node struct {
	kind     string
	text     string
	value    *expr
	targets  []*expr
	filter   *expr
	branches []branch
	body     []node
	other    []node
	params   []param
	line     int
}

type branch struct {
	condition *expr
	body      []node
}

type param struct {
	name  string
	value *expr
}

type expr struct {
	kind  string
	name  string
	value any
	parts []*expr
	named []param
	not   bool
}

const (
	mostSource  = 1 << 18
	mostNesting = 100
)

type lexeme struct {
	kind string
	text string
	line int
}

type source struct {
	rest string
	line int
}

type parser struct {
	src    source
	tokens []lexeme
	at     int
	depth  int
	loops  int
	trim   bool // the following text loses its first line break
	strip  bool // or its leading space
	fresh  bool // the following text begins a line
}

func parseTemplate(s string) ([]node, error) {
	if len(s) > mostSource || !utf8.ValidString(s) {
		return nil, fmt.Errorf("the template has %d bytes, expected at most %d of UTF-8", len(s), mostSource)
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	p := &parser{src: source{strings.TrimSuffix(s, "\n"), 1}, fresh: true}
	body, end, err := p.nodes(nil)
	if err == nil && end != "" {
		err = fmt.Errorf("%q without its beginning", end)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d of the template: %w", p.src.line, err)
	}
	return body, nil
}

func (p *parser) advance(n int) string {
	s := p.src.rest[:n]
	p.src.line += strings.Count(s, "\n")
	p.src.rest = p.src.rest[n:]
	return s
}

func (p *parser) nodes(until []string) (out []node, end string, err error) {
	if p.depth++; p.depth > mostNesting {
		return nil, "", fmt.Errorf("more than %d blocks in each other", mostNesting)
	}
	defer func() { p.depth-- }()
	for p.src.rest != "" {
		open := nextTag(p.src.rest)
		data := p.advance(open)
		switch {
		case p.strip:
			kept := strings.TrimLeftFunc(data, isSpace)
			p.fresh = strings.HasSuffix(data[:len(data)-len(kept)], "\n")
			data = kept
		case p.trim && strings.HasPrefix(data, "\n"):
			p.fresh, data = true, data[1:]
		}
		fresh := p.fresh
		p.strip, p.trim, p.fresh = false, false, false
		if p.src.rest == "" {
			return appendText(out, data), "", nil
		}
		tag, mark := p.src.rest[:2], byte(0)
		if len(p.src.rest) > 2 {
			mark = p.src.rest[2]
		}
		switch {
		case mark == '-':
			data = strings.TrimRightFunc(data, isSpace)
		case tag != "{{" && mark != '+':
			line := data[strings.LastIndexByte(data, '\n')+1:]
			if (len(line) < len(data) || fresh) && strings.TrimLeftFunc(line, isSpace) == "" {
				data = data[:len(data)-len(line)]
			}
		}
		out = appendText(out, data)
		if tag == "{#" {
			n := strings.Index(p.src.rest[2:], "#}")
			if n < 0 {
				return nil, "", fmt.Errorf("a comment without its end")
			}
			comment := p.advance(n + 4)
			p.strip = strings.HasSuffix(comment, "-#}")
			p.trim = !strings.HasSuffix(comment, "+#}")
			continue
		}
		line := p.src.line
		if err := p.lex(tag, mark); err != nil {
			return nil, "", err
		}
		if tag == "{{" {
			value, err := p.whole()
			if err != nil {
				return nil, "", err
			}
			out = append(out, node{kind: "print", value: value, line: line})
			continue
		}
		name := p.next()
		if name.kind != "name" {
			return nil, "", fmt.Errorf("a tag begins with %q, expected a name", name.text)
		}
		if slices.Contains(until, name.text) {
			return out, name.text, nil
		}
		n, err := p.statement(name.text)
		if err != nil {
			return nil, "", err
		}
		n.line = line
		out = append(out, n)
	}
	if len(until) > 0 {
		return nil, "", fmt.Errorf("the template ends, expected one of %q", until)
	}
	return out, "", nil
}

func appendText(out []node, s string) []node {
	if s == "" {
		return out
	}
	return append(out, node{kind: "text", text: s})
}

func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

func (p *parser) lex(tag string, mark byte) error {
	n := 2
	if mark == '-' || mark == '+' {
		n = 3
	}
	p.advance(n)
	end := map[string]string{"{{": "}}", "{%": "%}"}[tag]
	p.tokens, p.at = p.tokens[:0], 0
	brackets := 0
	for {
		p.advance(len(p.src.rest) - len(strings.TrimLeftFunc(p.src.rest, isSpace)))
		s := p.src.rest
		if s == "" {
			return fmt.Errorf("a tag without its end %q", end)
		}
		if brackets == 0 || end == "%}" {
			for _, m := range []string{"-", "+", ""} {
				if strings.HasPrefix(s, m+end) && (m != "+" || end == "%}") {
					p.advance(len(m) + 2)
					p.strip, p.trim = m == "-", end == "%}" && m != "+"
					p.tokens = append(p.tokens, lexeme{"end", "the end of the tag", p.src.line})
					return nil
				}
			}
		}
		c := s[0]
		switch {
		case c == '"' || c == '\'':
			text, n, err := unquote(s)
			if err != nil {
				return err
			}
			p.add("string", text, n)
		case c >= '0' && c <= '9':
			n := 1
			for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '_' || s[n] == '.' && n+1 < len(s) && s[n+1] >= '0' && s[n+1] <= '9') {
				n++
			}
			p.add("number", strings.ReplaceAll(s[:n], "_", ""), n)
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
			n := 1
			for n < len(s) && (s[n] == '_' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || s[n] >= '0' && s[n] <= '9') {
				n++
			}
			p.add("name", s[:n], n)
		default:
			found := false
			for _, op := range []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|"} {
				if strings.HasPrefix(s, op) {
					switch op {
					case "(", "[", "{":
						brackets++
					case ")", "]", "}":
						brackets--
					}
					p.add("op", op, len(op))
					found = true
					break
				}
			}
			if !found {
				return fmt.Errorf("the character %q is not supported", s[:1])
			}
		}
	}
}

func (p *parser) add(kind, text string, n int) {
	p.advance(n)
	p.tokens = append(p.tokens, lexeme{kind, text, p.src.line})
}

func unquote(s string) (string, int, error) {
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case s[0]:
			return out.String(), i + 1, nil
		case '\\':
			if i++; i == len(s) {
				continue
			}
			switch e := s[i]; e {
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			case 'r':
				out.WriteByte('\r')
			case '\\', '\'', '"':
				out.WriteByte(e)
			case '\n':
			case 'x', 'u':
				digits := map[byte]int{'x': 2, 'u': 4}[e]
				if i+digits >= len(s) {
					return "", 0, fmt.Errorf("a text without its end")
				}
				code, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 16)
				if err != nil || code >= 0xd800 && code < 0xe000 {
					return "", 0, fmt.Errorf("the escape \\%s is not supported", s[i:i+1+digits])
				}
				out.WriteRune(rune(code))
				i += digits
			default:
				if e >= '0' && e <= '9' || e|0x20 >= 'a' && e|0x20 <= 'z' {
					return "", 0, fmt.Errorf("the escape \\%c is not supported", e)
				}
				out.WriteByte('\\')
				out.WriteByte(e)
			}
		default:
			out.WriteByte(c)
		}
	}
	return "", 0, fmt.Errorf("a text without its end")
}

func (p *parser) peek() lexeme { return p.tokens[p.at] }

func (p *parser) next() lexeme {
	t := p.tokens[p.at]
	if t.kind != "end" {
		p.at++
	}
	return t
}

func (p *parser) take(text string) bool {
	if t := p.peek(); (t.kind == "op" || t.kind == "name") && t.text == text {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.take(text) {
		return fmt.Errorf("%q, expected %q", p.peek().text, text)
	}
	return nil
}

func (p *parser) done() error {
	if t := p.peek(); t.kind != "end" {
		return fmt.Errorf("%q, expected the end of the tag", t.text)
	}
	return nil
}

func (p *parser) whole() (*expr, error) {
	e, err := p.tuple()
	if err == nil {
		err = p.done()
	}
	return e, err
}

func (p *parser) identifier() (string, error) {
	t := p.next()
	if t.kind != "name" {
		return "", fmt.Errorf("%q, expected a name", t.text)
	}
	return t.text, nil
}

func (p *parser) targets() (out []*expr, err error) {
	for {
		name, err := p.identifier()
		if err != nil {
			return nil, err
		}
		e := &expr{kind: "name", name: name}
		if p.take(".") {
			attribute, err := p.identifier()
			if err != nil {
				return nil, err
			}
			e = &expr{kind: "attribute", name: attribute, parts: []*expr{e}}
		}
		if out = append(out, e); !p.take(",") {
			return out, nil
		}
	}
}

func (p *parser) statement(name string) (n node, err error) {
	switch name {
	case "if":
		n.kind = "if"
		for {
			var b branch
			if name != "else" {
				if b.condition, err = p.whole(); err != nil {
					return n, err
				}
			} else if err := p.done(); err != nil {
				return n, err
			}
			until := []string{"endif"}
			if b.condition != nil {
				until = append(until, "elif", "else")
			}
			if b.body, name, err = p.nodes(until); err != nil {
				return n, err
			}
			if n.branches = append(n.branches, b); name == "endif" {
				return n, p.done()
			}
		}
	case "for":
		n.kind = "for"
		if n.targets, err = p.targets(); err != nil {
			return n, err
		}
		for _, t := range n.targets {
			if t.kind != "name" {
				return n, fmt.Errorf("a loop over an attribute")
			}
		}
		if err := p.expect("in"); err != nil {
			return n, err
		}
		if n.value, err = p.or(); err != nil {
			return n, err
		}
		if p.take("if") {
			if n.filter, err = p.expression(); err != nil {
				return n, err
			}
		}
		if err := p.done(); err != nil {
			return n, err
		}
		p.loops++
		n.body, name, err = p.nodes([]string{"endfor", "else"})
		p.loops--
		if err == nil && name == "else" {
			if err = p.done(); err == nil {
				n.other, _, err = p.nodes([]string{"endfor"})
			}
		}
		if err == nil {
			err = p.done()
		}
		return n, err
	case "set":
		n.kind = "set"
		if n.targets, err = p.targets(); err != nil {
			return n, err
		}
		if p.take("=") {
			n.value, err = p.whole()
			return n, err
		}
		if err := p.done(); err != nil {
			return n, err
		}
		n.kind = "block"
		if n.body, _, err = p.nodes([]string{"endset"}); err == nil {
			err = p.done()
		}
		return n, err
	case "macro":
		n.kind = "macro"
		if n.text, err = p.identifier(); err != nil {
			return n, err
		}
		if err := p.expect("("); err != nil {
			return n, err
		}
		for !p.take(")") {
			var of param
			if of.name, err = p.identifier(); err != nil {
				return n, err
			}
			if p.take("=") {
				if of.value, err = p.expression(); err != nil {
					return n, err
				}
			}
			if n.params = append(n.params, of); !p.take(",") && p.peek().text != ")" {
				return n, fmt.Errorf("%q, expected %q", p.peek().text, ")")
			}
		}
		if err := p.done(); err != nil {
			return n, err
		}
		loops := p.loops
		p.loops = 0
		n.body, _, err = p.nodes([]string{"endmacro"})
		p.loops = loops
		if err != nil || p.take(n.text) {
			return n, err
		}
		return n, p.done()
	case "generation": // marks what the assistant wrote
		n.kind = "if"
		if err := p.done(); err != nil {
			return n, err
		}
		body, _, err := p.nodes([]string{"endgeneration"})
		if n.branches = []branch{{body: body}}; err == nil {
			err = p.done()
		}
		return n, err
	case "break", "continue":
		if p.loops == 0 {
			return n, fmt.Errorf("%s outside of a loop", name)
		}
		n.kind = name
		return n, p.done()
	}
	return n, fmt.Errorf("the tag %.40q is not supported", name)
}

func (p *parser) tuple() (*expr, error) {
	e, err := p.expression()
	if err != nil || !p.take(",") {
		return e, err
	}
	all := &expr{kind: "tuple", parts: []*expr{e}}
	for t := p.peek(); t.kind != "end" && t.text != ")"; t = p.peek() {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		if all.parts = append(all.parts, e); !p.take(",") {
			break
		}
	}
	return all, nil
}

func (p *parser) expression() (*expr, error) {
	if p.depth++; p.depth > mostNesting {
		return nil, fmt.Errorf("more than %d expressions in each other", mostNesting)
	}
	defer func() { p.depth-- }()
	e, err := p.or()
	for err == nil && p.take("if") {
		all := &expr{kind: "if", parts: []*expr{nil, e, nil}}
		if all.parts[0], err = p.or(); err == nil && p.take("else") {
			all.parts[2], err = p.expression()
		}
		e = all
	}
	return e, err
}

func (p *parser) or() (*expr, error) {
	return p.left(p.and, "or")
}

func (p *parser) and() (*expr, error) {
	return p.left(p.not, "and")
}

func (p *parser) left(operand func() (*expr, error), ops ...string) (*expr, error) {
	e, err := operand()
	for err == nil {
		op := ""
		for _, o := range ops {
			if p.take(o) {
				op = o
				break
			}
		}
		if op == "" {
			return e, nil
		}
		kind := "binary"
		if op == "and" || op == "or" {
			kind = op
		}
		var right *expr
		right, err = operand()
		e = &expr{kind: kind, name: op, parts: []*expr{e, right}}
	}
	return nil, err
}

func (p *parser) not() (*expr, error) {
	if p.depth++; p.depth > mostNesting {
		return nil, fmt.Errorf("more than %d expressions in each other", mostNesting)
	}
	defer func() { p.depth-- }()
	if p.take("not") {
		e, err := p.not()
		return &expr{kind: "unary", name: "not", parts: []*expr{e}}, err
	}
	return p.compare()
}

func (p *parser) compare() (*expr, error) {
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	all := &expr{kind: "compare", parts: []*expr{e}}
	for {
		op := ""
		for _, o := range []string{"==", "!=", "<=", ">=", "<", ">", "in"} {
			if p.take(o) {
				op = o
				break
			}
		}
		if op == "" && p.peek().text == "not" && p.peek().kind == "name" && p.tokens[p.at+1].text == "in" {
			p.at += 2
			op = "not in"
		}
		if op == "" {
			break
		}
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		all.parts, all.named = append(all.parts, right), append(all.named, param{name: op})
	}
	if len(all.named) == 0 {
		return e, nil
	}
	return all, nil
}

func (p *parser) sum() (*expr, error)     { return p.left(p.concat, "+", "-") }
func (p *parser) concat() (*expr, error)  { return p.left(p.product, "~") }
func (p *parser) product() (*expr, error) { return p.left(p.power, "*", "//", "/", "%") }

func (p *parser) power() (*expr, error) {
	e, err := p.unary(true)
	if err == nil && p.peek().text == "**" && p.peek().kind == "op" {
		return nil, fmt.Errorf("the operator ** is not supported")
	}
	return e, err
}

func (p *parser) unary(filters bool) (e *expr, err error) {
	if p.depth++; p.depth > mostNesting {
		return nil, fmt.Errorf("more than %d expressions in each other", mostNesting)
	}
	defer func() { p.depth-- }()
	if t := p.peek(); t.kind == "op" && (t.text == "-" || t.text == "+") {
		p.next()
		if e, err = p.unary(false); err == nil {
			e = &expr{kind: "unary", name: t.text, parts: []*expr{e}}
		}
	} else if e, err = p.primary(); err == nil {
		e, err = p.postfix(e)
	}
	for filters && err == nil {
		switch {
		case p.take("|"):
			f := &expr{kind: "filter", parts: []*expr{e}}
			if f.name, err = p.identifier(); err == nil && filterNames[f.name] == nil {
				err = fmt.Errorf("the filter %.40q is not supported", f.name)
			}
			if err == nil && p.take("(") {
				err = p.arguments(f)
			}
			e = f
		case p.take("is"):
			f := &expr{kind: "test", not: p.take("not"), parts: []*expr{e}}
			if f.name, err = p.identifier(); err == nil && testNames[f.name] == nil {
				err = fmt.Errorf("the test %.40q is not supported", f.name)
			}
			if err == nil && p.take("(") {
				err = p.arguments(f)
			} else if t := p.peek(); err == nil && (t.kind == "string" || t.kind == "number" || t.kind == "name" && !slices.Contains([]string{"and", "or", "else", "if", "is", "not", "in"}, t.text) || t.text == "[" || t.text == "{") {
				var argument *expr
				if argument, err = p.primary(); err == nil {
					argument, err = p.postfix(argument)
				}
				f.parts = append(f.parts, argument)
			}
			e = f
		case p.peek().kind == "op" && p.peek().text == "(":
			e, err = p.postfix(e)
		default:
			return e, nil
		}
	}
	return e, err
}

func (p *parser) arguments(of *expr) error {
	for !p.take(")") {
		if t := p.peek(); t.kind == "name" && p.tokens[p.at+1].kind == "op" && p.tokens[p.at+1].text == "=" {
			p.at += 2
			value, err := p.expression()
			if err != nil {
				return err
			}
			of.named = append(of.named, param{t.text, value})
		} else {
			if len(of.named) > 0 {
				return fmt.Errorf("an argument without a name follows one with a name")
			}
			value, err := p.expression()
			if err != nil {
				return err
			}
			of.parts = append(of.parts, value)
		}
		if !p.take(",") && p.peek().text != ")" {
			return fmt.Errorf("%q, expected %q", p.peek().text, ")")
		}
	}
	return nil
}

func (p *parser) primary() (*expr, error) {
	t := p.next()
	switch t.kind {
	case "string":
		parts := []string{t.text}
		for p.peek().kind == "string" {
			parts = append(parts, p.next().text)
		}
		return &expr{kind: "const", value: strings.Join(parts, "")}, nil
	case "number":
		if n, err := strconv.ParseInt(t.text, 10, 32); err == nil {
			return &expr{kind: "const", value: n}, nil
		}
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil || !strings.Contains(t.text, ".") {
			return nil, fmt.Errorf("the number %.40s is not supported", t.text)
		}
		return &expr{kind: "const", value: f}, nil
	case "name":
		switch t.text {
		case "true", "True":
			return &expr{kind: "const", value: true}, nil
		case "false", "False":
			return &expr{kind: "const", value: false}, nil
		case "none", "None":
			return &expr{kind: "const"}, nil
		}
		return &expr{kind: "name", name: t.text}, nil
	}
	switch t.text {
	case "(":
		if p.take(")") {
			return &expr{kind: "tuple"}, nil
		}
		e, err := p.tuple()
		if err == nil {
			err = p.expect(")")
		}
		return e, err
	case "[":
		e := &expr{kind: "list"}
		for !p.take("]") {
			x, err := p.expression()
			if err != nil {
				return nil, err
			}
			if e.parts = append(e.parts, x); !p.take(",") && p.peek().text != "]" {
				return nil, fmt.Errorf("%q, expected %q", p.peek().text, "]")
			}
		}
		return e, nil
	case "{":
		e := &expr{kind: "dict"}
		for !p.take("}") {
			key, err := p.expression()
			if err == nil {
				err = p.expect(":")
			}
			if err != nil {
				return nil, err
			}
			value, err := p.expression()
			if err != nil {
				return nil, err
			}
			if e.parts = append(e.parts, key, value); !p.take(",") && p.peek().text != "}" {
				return nil, fmt.Errorf("%q, expected %q", p.peek().text, "}")
			}
		}
		return e, nil
	}
	return nil, fmt.Errorf("%.40q, expected an expression", t.text)
}

func (p *parser) postfix(e *expr) (*expr, error) {
	for {
		switch {
		case p.take("."):
			name, err := p.identifier()
			if err != nil {
				return nil, err
			}
			e = &expr{kind: "attribute", name: name, parts: []*expr{e}}
		case p.take("["):
			out := &expr{kind: "item", parts: []*expr{e}}
			for part := 0; ; part++ {
				var x *expr
				var err error
				if t := p.peek(); t.text != ":" && t.text != "]" || t.kind == "string" {
					if x, err = p.expression(); err != nil {
						return nil, err
					}
				}
				out.parts = append(out.parts, x)
				if p.take("]") {
					break
				}
				if err := p.expect(":"); err != nil || part == 2 {
					return nil, fmt.Errorf("%q in a subscript: %w", p.peek().text, err)
				}
				out.kind = "slice"
			}
			if out.kind == "item" && out.parts[1] == nil {
				return nil, fmt.Errorf("a subscript is empty")
			}
			e = out
		case p.peek().kind == "op" && p.peek().text == "(":
			p.next()
			out := &expr{kind: "call", parts: []*expr{e}}
			if err := p.arguments(out); err != nil {
				return nil, err
			}
			e = out
		default:
			return e, nil
		}
	}
}
