package chat

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

type renderer struct {
	out   strings.Builder
	steps int
	depth int
	deep  int // expressions in each other
	fault error
	now   func() time.Time
}

const (
	mostOutput = 16 << 20
	mostSteps  = 1_000_000
	mostCalls  = 100
	mostDeep   = 5000
)

var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

type scope struct {
	names map[string]any
	outer *scope
}

func (s *scope) lookup(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (r *renderer) spend(n int) {
	if r.steps += n; r.steps > mostSteps && r.fault == nil {
		r.fault = fmt.Errorf("it takes more than %d steps", mostSteps)
	}
}

func (r *renderer) failure(otherwise string) error {
	if r.fault != nil {
		return r.fault
	}
	return errors.New(otherwise)
}

func (r *renderer) write(s string) error {
	r.spend(len(s) / 64)
	if r.out.Len()+len(s) > mostOutput {
		return fmt.Errorf("it makes more than %d bytes", mostOutput)
	}
	r.out.WriteString(s)
	return r.fault
}

func (r *renderer) run(body []node, s *scope) error {
	if r.depth++; r.depth > mostCalls {
		return fmt.Errorf("it has more than %d blocks or macros in each other", mostCalls)
	}
	defer func() { r.depth-- }()
	for i := range body {
		n := &body[i]
		if r.spend(1); r.fault != nil {
			return r.fault
		}
		err := r.node(n, s)
		if err != nil {
			if n.line > 0 && !errors.Is(err, errBreak) && !errors.Is(err, errContinue) && !errors.As(err, new(*placed)) {
				err = &placed{n.line, err}
			}
			return err
		}
	}
	return nil
}

type placed struct {
	line int
	err  error
}

func (p *placed) Error() string { return fmt.Sprintf("line %d: %v", p.line, p.err) }
func (p *placed) Unwrap() error { return p.err }

func (r *renderer) node(n *node, s *scope) error {
	switch n.kind {
	case "text":
		return r.write(n.text)
	case "print":
		v, err := r.eval(n.value, s)
		if err != nil {
			return err
		}
		text, err := r.str(v)
		if err != nil {
			return err
		}
		return r.write(text)
	case "if":
		for _, b := range n.branches {
			if b.condition != nil {
				v, err := r.eval(b.condition, s)
				if err != nil {
					return err
				}
				if !truth(v) {
					continue
				}
			}
			return r.run(b.body, s)
		}
	case "for":
		return r.loop(n, s)
	case "set":
		v, err := r.eval(n.value, s)
		if err != nil {
			return err
		}
		return r.assign(n.targets, v, s)
	case "block":
		text, err := r.captured(n.body, &scope{names: map[string]any{}, outer: s})
		if err != nil {
			return err
		}
		return r.assign(n.targets, text, s)
	case "macro":
		s.names[n.text] = &macro{*n, s}
	case "break":
		return errBreak
	case "continue":
		return errContinue
	}
	return nil
}

func (r *renderer) captured(body []node, s *scope) (string, error) {
	before := r.out.String()
	r.spend(len(before) / 64)
	r.out.Reset()
	err := r.run(body, s)
	text := r.out.String()
	r.out.Reset()
	r.out.WriteString(before)
	return text, err
}

func (r *renderer) assign(targets []*expr, v any, s *scope) (err error) {
	values := []any{v}
	if len(targets) > 1 {
		of, ok := v.(*array)
		if !ok || len(of.items) != len(targets) {
			return fmt.Errorf("%d names for %s", len(targets), kindOf(v))
		}
		if values, err = r.items(of); err != nil {
			return err
		}
	}
	for i, t := range targets {
		if t.kind == "name" {
			s.names[t.name] = values[i]
			continue
		}
		of, _ := s.lookup(t.parts[0].name)
		ns, ok := of.(*namespace)
		if !ok {
			return fmt.Errorf("%q is not a namespace, and its attribute cannot be set", t.parts[0].name)
		}
		ns.set(t.name, values[i])
	}
	return nil
}

func (r *renderer) items(v any) ([]any, error) {
	switch v := v.(type) {
	case *array:
		items := v.items
		if v.as == iterator {
			v.items = nil
		}
		return items, nil
	case undefined:
		return nil, nil
	case *dict:
		r.spend(len(v.keys))
		var out []any
		for _, k := range v.keys {
			out = append(out, k)
		}
		return out, nil
	case string:
		r.spend(len(v))
		if r.fault != nil {
			return nil, r.fault
		}
		var out []any
		for _, c := range v {
			out = append(out, string(c))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s cannot be gone through", kindOf(v))
}

func (r *renderer) loop(n *node, s *scope) error {
	over, err := r.eval(n.value, s)
	if err != nil {
		return err
	}
	items, err := r.items(over)
	if err != nil {
		return err
	}
	if n.filter != nil {
		var kept []any
		for _, item := range items {
			inner := &scope{names: map[string]any{}, outer: s}
			if err := r.assign(n.targets, item, inner); err != nil {
				return err
			}
			v, err := r.eval(n.filter, inner)
			if err != nil {
				return err
			}
			if truth(v) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	if len(items) == 0 {
		return r.run(n.other, s)
	}
	for i, item := range items {
		r.spend(20)
		about := newDict()
		about.set("index", int64(i+1))
		about.set("index0", int64(i))
		about.set("first", i == 0)
		about.set("last", i == len(items)-1)
		about.set("length", int64(len(items)))
		about.set("revindex", int64(len(items)-i))
		about.set("revindex0", int64(len(items)-i-1))
		about.set("previtem", undefined{"loop.previtem"})
		about.set("nextitem", undefined{"loop.nextitem"})
		if i > 0 {
			about.set("previtem", items[i-1])
		}
		if i < len(items)-1 {
			about.set("nextitem", items[i+1])
		}
		inner := &scope{names: map[string]any{"loop": about}, outer: s}
		if err := r.assign(n.targets, item, inner); err != nil {
			return err
		}
		if err := r.run(n.body, inner); errors.Is(err, errBreak) {
			return nil
		} else if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

func (r *renderer) eval(e *expr, s *scope) (any, error) {
	if r.spend(1); r.fault != nil {
		return nil, r.fault
	}
	if r.deep++; r.deep > mostDeep {
		return nil, fmt.Errorf("it has more than %d expressions in each other", mostDeep)
	}
	defer func() { r.deep-- }()
	switch e.kind {
	case "const":
		return e.value, nil
	case "name":
		if v, ok := s.lookup(e.name); ok {
			return v, nil
		}
		if f, ok := globals[e.name]; ok {
			return f, nil
		}
		return undefined{e.name}, nil
	case "and", "or":
		v, err := r.eval(e.parts[0], s)
		if err != nil || truth(v) == (e.kind == "or") {
			return v, err
		}
		return r.eval(e.parts[1], s)
	case "if":
		v, err := r.eval(e.parts[0], s)
		switch {
		case err != nil:
			return nil, err
		case truth(v):
			return r.eval(e.parts[1], s)
		case e.parts[2] == nil:
			return undefined{"an if without else"}, nil
		}
		return r.eval(e.parts[2], s)
	}
	parts := make([]any, len(e.parts))
	for i, p := range e.parts {
		if p == nil {
			continue
		}
		var err error
		if parts[i], err = r.eval(p, s); err != nil {
			return nil, err
		}
		if e.kind == "compare" && i > 0 {
			ok, err := r.compare(e.named[i-1].name, parts[i-1], parts[i])
			if err != nil || !ok || i == len(e.parts)-1 {
				return ok, err
			}
		}
	}
	named := map[string]any{}
	if e.kind == "call" || e.kind == "filter" || e.kind == "test" {
		for _, p := range e.named {
			v, err := r.eval(p.value, s)
			if err != nil {
				return nil, err
			}
			named[p.name] = v
		}
	}
	switch e.kind {
	case "list":
		return &array{parts, list}, nil
	case "tuple":
		return &array{parts, tuple}, nil
	case "dict":
		d := newDict()
		for i := 0; i < len(parts); i += 2 {
			key, ok := parts[i].(string)
			if !ok {
				return nil, fmt.Errorf("a key of a mapping is %s, expected a text", kindOf(parts[i]))
			}
			d.set(key, parts[i+1])
		}
		return d, nil
	case "unary":
		if e.name == "not" {
			return !truth(parts[0]), nil
		}
		sign := int64(1)
		if e.name == "-" {
			sign = -1
		}
		if n, ok := integer(parts[0]); ok {
			return sign * n, nil
		}
		if f, ok := parts[0].(float64); ok {
			return float64(sign) * f, nil
		}
		return nil, fmt.Errorf("%s%s", e.name, kindOf(parts[0]))
	case "binary":
		return r.binary(e.name, parts[0], parts[1])
	case "attribute":
		return r.attribute(parts[0], e.name)
	case "item":
		return r.item(parts[0], parts[1])
	case "slice":
		return r.slice(parts[0], parts[1:])
	case "filter":
		return filterNames[e.name](r, parts, named)
	case "test":
		v, err := testNames[e.name](r, parts)
		return v != e.not, err
	case "call":
		return r.call(parts[0], parts[1:], named)
	}
	return nil, fmt.Errorf("the expression %s is not supported", e.kind)
}

func (r *renderer) call(f any, args []any, named map[string]any) (any, error) {
	switch f := f.(type) {
	case method:
		return f(r, args, named)
	case *macro:
		if len(args) > len(f.params) {
			return nil, fmt.Errorf("the macro %s takes %d arguments, not %d", f.text, len(f.params), len(args))
		}
		inner := &scope{names: map[string]any{}, outer: f.outer}
		for i, p := range f.params {
			v, ok := named[p.name]
			delete(named, p.name)
			switch {
			case i < len(args):
				v = args[i]
			case ok:
			case p.value != nil:
				var err error
				if v, err = r.eval(p.value, inner); err != nil {
					return nil, err
				}
			default:
				v = undefined{p.name}
			}
			inner.names[p.name] = v
		}
		if len(named) > 0 {
			return nil, fmt.Errorf("the macro %s does not take %d of the named arguments", f.text, len(named))
		}
		return r.captured(f.body, inner)
	}
	return nil, fmt.Errorf("%s cannot be called", kindOf(f))
}

func (r *renderer) binary(op string, a, b any) (any, error) {
	if op == "~" {
		x, err := r.str(a)
		if err != nil {
			return nil, err
		}
		y, err := r.str(b)
		if err != nil {
			return nil, err
		}
		return r.joined(x, y)
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok && op == "+" {
			return r.joined(x, y)
		}
		if n, ok := integer(b); ok && op == "*" {
			if n < 0 {
				n = 0
			}
			if int64(len(x))*n > mostOutput || n > mostOutput {
				return nil, fmt.Errorf("a text of more than %d bytes", mostOutput)
			}
			r.spend(len(x) * int(n) / 64)
			return strings.Repeat(x, int(n)), r.fault
		}
	case *array:
		if y, ok := b.(*array); ok && op == "+" && x.as == y.as && x.literal() {
			if r.spend(len(x.items) + len(y.items)); r.fault != nil {
				return nil, r.fault
			}
			return &array{append(append([]any{}, x.items...), y.items...), x.as}, nil
		}
	}
	i, isInt := integer(a)
	j, alsoInt := integer(b)
	if isInt && alsoInt && op != "/" {
		const most = 1 << 31
		if i > most || i < -most || j > most || j < -most {
			return nil, fmt.Errorf("a number above %d", most)
		}
		if j == 0 && (op == "//" || op == "%") {
			return nil, fmt.Errorf("a division by zero")
		}
		switch op {
		case "+":
			return i + j, nil
		case "-":
			return i - j, nil
		case "*":
			return i * j, nil
		case "//":
			return int64(math.Floor(float64(i) / float64(j))), nil
		case "%":
			return (i%j + j) % j, nil
		}
	}
	x, ok := number(a)
	y, also := number(b)
	if ok && also {
		switch {
		case op == "+":
			return x + y, nil
		case op == "-":
			return x - y, nil
		case op == "*":
			return x * y, nil
		case op == "/" && y != 0:
			return x / y, nil
		}
	}
	return nil, fmt.Errorf("%s %s %s", kindOf(a), op, kindOf(b))
}

func (r *renderer) joined(a, b string) (any, error) {
	if len(a)+len(b) > mostOutput {
		return nil, fmt.Errorf("a text of more than %d bytes", mostOutput)
	}
	r.spend((len(a) + len(b)) / 64)
	return a + b, r.fault
}

func (r *renderer) compare(op string, a, b any) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b), r.fault
	case "!=":
		return !r.equal(a, b), r.fault
	case "in", "not in":
		found := false
		switch of := b.(type) {
		case string:
			s, ok := a.(string)
			if !ok {
				return false, fmt.Errorf("%s in a text", kindOf(a))
			}
			r.spend((len(of) + len(s)) / 16)
			found = strings.Contains(of, s)
		case *array:
			for i, x := range of.items {
				if found = r.equal(a, x); found || r.fault != nil {
					if of.as == iterator {
						of.items = of.items[i+1:]
					}
					return found == (op == "in"), r.fault
				}
			}
			if of.as == iterator {
				of.items = nil
			}
		case *dict:
			if s, ok := a.(string); ok {
				_, found = of.values[s]
			}
		case undefined:
		default:
			return false, fmt.Errorf("in %s", kindOf(b))
		}
		return found == (op == "in"), r.fault
	}
	order := 0
	x, ok := number(a)
	y, also := number(b)
	s, text := a.(string)
	t, texts := b.(string)
	r.spend(min(len(s), len(t)) / 64)
	switch {
	case ok && also && x < y, text && texts && s < t:
		order = -1
	case ok && also && x > y, text && texts && s > t:
		order = 1
	case ok && also, text && texts:
	default:
		return false, fmt.Errorf("%s %s %s", kindOf(a), op, kindOf(b))
	}
	return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[op], nil
}

func (r *renderer) attribute(of any, name string) (any, error) {
	switch of := of.(type) {
	case undefined:
		return nil, fmt.Errorf("%s has no attribute %.40q", kindOf(of), name)
	case *namespace:
		if v, ok := of.values[name]; ok {
			return v, nil
		}
	case *dict:
		if m, ok := dictMethods[name]; ok {
			return m(of), nil
		}
		if v, ok := of.values[name]; ok {
			return v, nil
		}
	case string:
		if m, ok := textMethods[name]; ok {
			return m(of), nil
		}
		if pythonText[name] {
			return nil, fmt.Errorf("the method %s of a text is not supported", name)
		}
	case *array:
		if pythonList[name] {
			return nil, fmt.Errorf("the method %s of a list is not supported, or would change it", name)
		}
	}
	return undefined{name}, nil
}

func (r *renderer) item(of, key any) (any, error) {
	switch of := of.(type) {
	case undefined:
		return nil, fmt.Errorf("%s has no items", kindOf(of))
	case *dict:
		if s, ok := key.(string); ok {
			if v, ok := of.values[s]; ok {
				return v, nil
			}
			return undefined{s}, nil
		}
	case *array:
		if !of.indexed() {
			return nil, fmt.Errorf("%s has no items by number", kindOf(of))
		}
		if i, ok := integer(key); ok {
			if i < 0 {
				i += int64(len(of.items))
			}
			if i >= 0 && i < int64(len(of.items)) {
				return of.items[i], nil
			}
			return undefined{"an item"}, nil
		}
	case string:
		if i, ok := integer(key); ok {
			r.spend(len(of) / 4)
			runes := []rune(of)
			if i < 0 {
				i += int64(len(runes))
			}
			if i >= 0 && i < int64(len(runes)) {
				return string(runes[i]), r.fault
			}
			return undefined{"an item"}, r.fault
		}
	}
	if s, ok := key.(string); ok {
		return r.attribute(of, s)
	}
	return undefined{"an item"}, nil
}

func (r *renderer) slice(of any, by []any) (any, error) {
	var n int
	var runes []rune
	all, isList := of.(*array)
	text, isText := of.(string)
	switch {
	case isList && all.indexed():
		n = len(all.items)
	case isText:
		r.spend(len(text) / 4)
		runes = []rune(text)
		n = len(runes)
	default:
		return nil, fmt.Errorf("a part of %s", kindOf(of))
	}
	numbers := [3]int{0, 0, 1}
	given := [3]bool{}
	for i, v := range by {
		if v == nil {
			continue
		}
		k, ok := integer(v)
		if !ok || k > math.MaxInt32 || k < -math.MaxInt32 {
			return nil, fmt.Errorf("a part from %s", kindOf(v))
		}
		numbers[i], given[i] = int(k), true
	}
	step := numbers[2]
	if step == 0 {
		return nil, fmt.Errorf("a part with the step 0")
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(i, otherwise int) int {
		k := numbers[i]
		if !given[i] {
			return otherwise
		}
		if k < 0 {
			k += n
		}
		return min(max(k, low), high)
	}
	from, to := bound(0, low), bound(1, high)
	if step < 0 {
		from, to = bound(0, high), bound(1, low)
	}
	out := &array{}
	if isList {
		out.as = all.as
	}
	var part []rune
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if isList {
			out.items = append(out.items, all.items[i])
		} else {
			part = append(part, runes[i])
		}
	}
	r.spend(len(out.items))
	if isList {
		return out, r.fault
	}
	return string(part), r.fault
}
