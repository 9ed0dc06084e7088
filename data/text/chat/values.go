package chat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

type undefined struct{ name string }

type array struct {
	items []any
	as    sequence
}

type sequence string

const (
	list     sequence = "a list"
	tuple    sequence = "a tuple"
	numbers  sequence = "a range"
	view     sequence = "a view of a mapping"
	iterator sequence = "an iterator" // can be gone through once
)

func (a *array) literal() bool { return a.as == list || a.as == tuple }
func (a *array) indexed() bool { return a.literal() || a.as == numbers }

type dict struct {
	keys   []string
	values map[string]any
}

type namespace struct{ dict }

type macro struct {
	node
	outer *scope
}

type method func(r *renderer, args []any, named map[string]any) (any, error)

func newDict() *dict { return &dict{values: map[string]any{}} }

func (d *dict) set(key string, value any) {
	if _, known := d.values[key]; !known {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case undefined:
		return fmt.Sprintf("%.60q, which is undefined", v.name)
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case *array:
		return string(v.as)
	case *dict, *namespace:
		return "a mapping"
	}
	return "a function"
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *array:
		return len(v.items) > 0 || v.as == iterator
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

func number(v any) (float64, bool) {
	if n, ok := integer(v); ok {
		return float64(n), true
	}
	x, ok := v.(float64)
	return x, ok
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

func (r *renderer) equal(a, b any) bool {
	if r.spend(1); r.fault != nil {
		return false
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		s, ok := b.(string)
		r.spend(len(s) / 64)
		return ok && a == s
	case *array:
		other, ok := b.(*array)
		if ok && a != other && (!a.literal() || !other.literal()) {
			r.fault = fmt.Errorf("%s == %s is not supported", kindOf(a), kindOf(other))
		}
		if !ok || a.as != other.as || len(a.items) != len(other.items) {
			return false
		}
		for i := range a.items {
			if !r.equal(a.items[i], other.items[i]) {
				return false
			}
		}
		return true
	case *dict:
		other, ok := b.(*dict)
		if !ok || len(a.keys) != len(other.keys) {
			return false
		}
		for _, k := range a.keys {
			if v, ok := other.values[k]; !ok || !r.equal(a.values[k], v) {
				return false
			}
		}
		return true
	case *namespace:
		return a == b
	case *macro:
		return a == b
	}
	return false
}

func float(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case f == math.Trunc(f) && math.Abs(f) < 1e16:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case math.Abs(f) >= 1e16 || math.Abs(f) < 1e-4:
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func (r *renderer) str(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	var out strings.Builder
	err := r.repr(&out, v, 0)
	return out.String(), err
}

func (r *renderer) repr(out *strings.Builder, v any, depth int) error {
	if r.spend(1); depth > mostNesting || r.fault != nil || out.Len() > mostOutput {
		return r.failure("a value in a value without end")
	}
	switch v := v.(type) {
	case nil:
		out.WriteString("None")
	case undefined:
		if depth > 0 {
			return fmt.Errorf("%s cannot be printed in a list", kindOf(v))
		}
	case bool:
		out.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		out.WriteString(strconv.FormatInt(v, 10))
	case float64:
		out.WriteString(float(v))
	case string:
		return r.quote(out, v)
	case *array:
		if !v.literal() {
			return fmt.Errorf("%s cannot be printed", kindOf(v))
		}
		open, end := "[", "]"
		if v.as == tuple {
			open, end = "(", ")"
			if len(v.items) == 1 {
				end = ",)"
			}
		}
		out.WriteString(open)
		for i, x := range v.items {
			if i > 0 {
				out.WriteString(", ")
			}
			if err := r.repr(out, x, depth+1); err != nil {
				return err
			}
		}
		out.WriteString(end)
	case *dict:
		out.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				out.WriteString(", ")
			}
			if err := r.quote(out, k); err != nil {
				return err
			}
			out.WriteString(": ")
			if err := r.repr(out, v.values[k], depth+1); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	default:
		return fmt.Errorf("%s cannot be printed", kindOf(v))
	}
	return nil
}

func (r *renderer) quote(out *strings.Builder, s string) error {
	r.spend(len(s) / 16)
	mark := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = '"'
	}
	out.WriteByte(mark)
	for _, c := range s {
		switch {
		case c == rune(mark) || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(out, `\x%02x`, c)
		case c >= 0x80 && !unicode.IsPrint(c):
			return fmt.Errorf("the character %U cannot be printed in a list", c)
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte(mark)
	return nil
}

func (r *renderer) json(out *strings.Builder, v any, indent, depth int) error {
	if r.spend(1); depth > mostNesting || r.fault != nil || out.Len() > mostOutput {
		return r.failure("a value in a value without end")
	}
	line := func(depth int) {
		if indent >= 0 {
			r.spend(indent * depth / 16)
			out.WriteString("\n" + strings.Repeat(" ", indent*depth))
		}
	}
	separator := ", "
	if indent >= 0 {
		separator = ","
	}
	text := func(s string) {
		r.spend(len(s) / 16)
		out.WriteByte('"')
		for _, c := range s {
			if short, ok := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}[c]; ok {
				out.WriteString(short)
			} else if c < ' ' {
				fmt.Fprintf(out, `\u%04x`, c)
			} else {
				out.WriteRune(c)
			}
		}
		out.WriteByte('"')
	}
	switch v := v.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		out.WriteString(strconv.FormatBool(v))
	case int64:
		out.WriteString(strconv.FormatInt(v, 10))
	case float64:
		out.WriteString(float(v))
	case string:
		text(v)
	case *array:
		if !v.literal() {
			return fmt.Errorf("tojson of %s", kindOf(v))
		}
		out.WriteByte('[')
		for i, x := range v.items {
			if i > 0 {
				out.WriteString(separator)
			}
			line(depth + 1)
			if err := r.json(out, x, indent, depth+1); err != nil {
				return err
			}
		}
		if len(v.items) > 0 {
			line(depth)
		}
		out.WriteByte(']')
	case *dict:
		out.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				out.WriteString(separator)
			}
			line(depth + 1)
			text(k)
			out.WriteString(": ")
			if err := r.json(out, v.values[k], indent, depth+1); err != nil {
				return err
			}
		}
		if len(v.keys) > 0 {
			line(depth)
		}
		out.WriteByte('}')
	default:
		return fmt.Errorf("tojson of %s", kindOf(v))
	}
	return nil
}
