package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	pythonText = setOf("capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii isdecimal isdigit isidentifier " +
		"islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition " +
		"rsplit rstrip split splitlines startswith strip swapcase title translate upper zfill")
	pythonList = setOf("append clear copy count extend index insert pop remove reverse sort")
)

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for _, n := range strings.Fields(names) {
		set[n] = true
	}
	return set
}

func ascii(s string) error {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return fmt.Errorf("another case of a text beyond ASCII is not supported")
		}
	}
	return nil
}

func texts(name string, args []any, named map[string]any, least, most int) ([]string, error) {
	if len(args) < least || len(args) > most || len(named) > 0 {
		return nil, fmt.Errorf("%s takes %d to %d arguments without names, not %d", name, least, most, len(args)+len(named))
	}
	var out []string
	for _, a := range args {
		s, ok := a.(string)
		if !ok {
			return nil, fmt.Errorf("an argument of %s is %s, expected a text", name, kindOf(a))
		}
		out = append(out, s)
	}
	return out, nil
}

func onText(name string, least, most int, do func(s string, args []string) (any, error)) func(s string) method {
	return func(s string) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			if len(args) == 1 && args[0] == nil && least == 0 {
				args = nil
			}
			all, err := texts(name, args, named, least, most)
			for _, a := range all {
				r.spend(len(a))
			}
			if r.spend(1 + len(s)/16); err != nil || r.fault != nil {
				return nil, r.failure(fmt.Sprint(err))
			}
			return do(s, all)
		}
	}
}

func trimmer(name string, left, right bool) func(s string) method {
	return onText(name, 0, 1, func(s string, args []string) (any, error) { return trimmed(s, args, left, right), nil })
}

func trimmed(s string, args []string, left, right bool) string {
	in := isSpace
	if len(args) > 0 {
		set := map[rune]bool{}
		for _, c := range args[0] {
			set[c] = true
		}
		in = func(c rune) bool { return set[c] }
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

func lower(s string, _ []string) (any, error) { return strings.ToLower(s), ascii(s) }
func upperCase(s string, _ []string) (any, error) {
	return strings.ToUpper(s), ascii(s)
}

func capitalized(s string, _ []string) (any, error) {
	if s == "" {
		return s, nil
	}
	return strings.ToUpper(s[:1]) + strings.ToLower(s[1:]), ascii(s)
}

func titled(s string, _ []string) (any, error) {
	out := []byte(strings.ToLower(s))
	for i, c := range out {
		if c >= 'a' && c <= 'z' && (i == 0 || !(out[i-1]|0x20 >= 'a' && out[i-1]|0x20 <= 'z')) {
			out[i] -= 'a' - 'A'
		}
	}
	return string(out), ascii(s)
}

var textMethods = map[string]func(s string) method{
	"strip": trimmer("strip", true, true), "lstrip": trimmer("lstrip", true, false), "rstrip": trimmer("rstrip", false, true),
	"lower": onText("lower", 0, 0, lower), "upper": onText("upper", 0, 0, upperCase), "title": onText("title", 0, 0, titled), "capitalize": onText("capitalize", 0, 0, capitalized),
	"startswith":   onText("startswith", 1, 1, func(s string, a []string) (any, error) { return strings.HasPrefix(s, a[0]), nil }),
	"endswith":     onText("endswith", 1, 1, func(s string, a []string) (any, error) { return strings.HasSuffix(s, a[0]), nil }),
	"removeprefix": onText("removeprefix", 1, 1, func(s string, a []string) (any, error) { return strings.TrimPrefix(s, a[0]), nil }),
	"removesuffix": onText("removesuffix", 1, 1, func(s string, a []string) (any, error) { return strings.TrimSuffix(s, a[0]), nil }),
	"find": onText("find", 1, 1, func(s string, a []string) (any, error) {
		i := strings.Index(s, a[0])
		if i > 0 {
			i = utf8.RuneCountInString(s[:i])
		}
		return int64(i), nil
	}),
	"count": onText("count", 1, 1, func(s string, a []string) (any, error) { return int64(strings.Count(s, a[0])), nil }),
	"replace": func(s string) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			a, err := texts("replace", args, named, 2, 2)
			if err != nil {
				return nil, err
			}
			return r.replaced(s, a[0], a[1])
		}
	},
	"split": func(s string) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			most := int64(-1)
			if len(args) == 2 {
				n, ok := integer(args[1])
				if !ok {
					return nil, fmt.Errorf("split into %s", kindOf(args[1]))
				}
				most, args = n, args[:1]
			}
			a, err := texts("split", args, named, 0, 1)
			if err != nil {
				return nil, err
			}
			if r.spend(len(s) / 4); r.fault != nil {
				return nil, r.fault
			}
			var parts []string
			switch {
			case len(a) == 0 && most < 0:
				parts = strings.FieldsFunc(s, isSpace)
			case len(a) == 0 || a[0] == "":
				return nil, fmt.Errorf("split by nothing")
			case most >= 0:
				parts = strings.SplitN(s, a[0], int(min(most, mostOutput))+1)
			default:
				r.spend(strings.Count(s, a[0]))
				if r.fault != nil {
					return nil, r.fault
				}
				parts = strings.Split(s, a[0])
			}
			r.spend(len(parts))
			out := &array{as: list}
			for _, p := range parts {
				out.items = append(out.items, p)
			}
			return out, r.fault
		}
	},
}

func (r *renderer) replaced(s, old, by string) (any, error) {
	r.spend(len(s) / 16)
	n := strings.Count(s, old)
	if len(s)+n*len(by) > mostOutput {
		return nil, fmt.Errorf("a text of more than %d bytes", mostOutput)
	}
	if r.spend(n*len(by)/16 + n); r.fault != nil {
		return nil, r.fault
	}
	return strings.ReplaceAll(s, old, by), nil
}

var dictMethods = map[string]func(d *dict) method{
	"items": func(d *dict) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			out := &array{as: view}
			r.spend(3 * len(d.keys))
			for _, k := range d.keys {
				out.items = append(out.items, &array{[]any{k, d.values[k]}, tuple})
			}
			return out, r.fault
		}
	},
	"keys": func(d *dict) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			items, err := r.items(d)
			return &array{items, view}, err
		}
	},
	"values": func(d *dict) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			out := &array{as: view}
			r.spend(len(d.keys))
			for _, k := range d.keys {
				out.items = append(out.items, d.values[k])
			}
			return out, r.fault
		}
	},
	"get": func(d *dict) method {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			if len(args) < 1 || len(args) > 2 || len(named) > 0 {
				return nil, fmt.Errorf("get takes 1 or 2 arguments")
			}
			if key, ok := args[0].(string); ok {
				if v, ok := d.values[key]; ok {
					return v, nil
				}
			}
			if len(args) == 2 {
				return args[1], nil
			}
			return nil, nil
		}
	},
}

var globals map[string]any

func init() {
	globals = map[string]any{"range": method(rangeOf), "namespace": method(namespaceOf), "dict": method(dictOf), "raise_exception": method(raise), "strftime_now": method(timeNow)}
}

func rangeOf(r *renderer, args []any, named map[string]any) (any, error) {
	var n [3]int64
	for i, a := range args {
		k, ok := integer(a)
		if !ok || i > 2 {
			return nil, fmt.Errorf("range of %s", kindOf(a))
		}
		n[i] = k
	}
	switch len(args) {
	case 1:
		n = [3]int64{0, n[0], 1}
	case 2:
		n[2] = 1
	case 3:
	default:
		return nil, fmt.Errorf("range takes 1 to 3 arguments, not %d", len(args))
	}
	if n[2] == 0 {
		return nil, fmt.Errorf("range with the step 0")
	}
	const most = 100_000 // as in Jinja's sandbox
	out := &array{as: numbers}
	for i := n[0]; n[2] > 0 && i < n[1] || n[2] < 0 && i > n[1]; i += n[2] {
		if out.items = append(out.items, i); len(out.items) > most {
			return nil, fmt.Errorf("range of more than %d numbers", most)
		}
	}
	r.spend(len(out.items))
	return out, r.fault
}

func dictOf(r *renderer, args []any, named map[string]any) (any, error) {
	d := newDict()
	if len(args) > 0 || len(named) > 1 { // the order of several is not known here
		return nil, fmt.Errorf("dict of more than one value is not supported")
	}
	for k, v := range named {
		d.set(k, v)
	}
	return d, nil
}

func namespaceOf(r *renderer, args []any, named map[string]any) (any, error) {
	ns := &namespace{*newDict()}
	for _, a := range args {
		d, ok := a.(*dict)
		if !ok {
			return nil, fmt.Errorf("namespace of %s", kindOf(a))
		}
		r.spend(len(d.keys))
		for _, k := range d.keys {
			ns.set(k, d.values[k])
		}
	}
	for k, v := range named {
		ns.set(k, v)
	}
	return ns, nil
}

func raise(r *renderer, args []any, named map[string]any) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("raise_exception takes 1 argument")
	}
	s, err := r.str(args[0])
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the template refuses the conversation: %.200q", s)
}

func timeNow(r *renderer, args []any, named map[string]any) (any, error) {
	a, err := texts("strftime_now", args, named, 1, 1)
	if err != nil {
		return nil, err
	}
	if r.spend(len(a[0])); r.fault != nil {
		return nil, r.fault
	}
	return strftime(r.now(), a[0])
}

var strftimeParts = map[byte]string{'d': "02", 'b': "Jan", 'B': "January", 'Y': "2006", 'm': "01", 'y': "06", 'H': "15", 'M': "04", 'S': "05", 'A': "Monday", 'a': "Mon", 'I': "03", 'p': "PM"}

func strftime(now time.Time, format string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			out.WriteByte('%')
			continue
		}
		if i == len(format) || strftimeParts[format[i]] == "" {
			return "", fmt.Errorf("the format %.40q of a time is not supported", format)
		}
		out.WriteString(now.Format(strftimeParts[format[i]]))
	}
	return out.String(), nil
}

type filterFunc func(r *renderer, args []any, named map[string]any) (any, error)

var filterNames map[string]filterFunc
var testNames map[string]func(r *renderer, args []any) (bool, error)

func textFilter(name string, do func(s string) func() method) filterFunc {
	return func(r *renderer, args []any, named map[string]any) (any, error) {
		s, err := r.str(args[0])
		if err != nil {
			return nil, err
		}
		return do(s)()(r, args[1:], named)
	}
}

func init() {
	asFilter := func(name string) filterFunc {
		return textFilter(name, func(s string) func() method { return func() method { return textMethods[name](s) } })
	}
	bare := func(name string, do filterFunc) filterFunc {
		return func(r *renderer, args []any, named map[string]any) (any, error) {
			if len(args) != 1 || len(named) > 0 {
				return nil, fmt.Errorf("the filter %s with arguments is not supported", name)
			}
			return do(r, args, named)
		}
	}
	end := func(name string, last bool) filterFunc {
		return bare(name, func(r *renderer, args []any, _ map[string]any) (any, error) {
			of, _ := args[0].(*array)
			once := of != nil && of.as == iterator
			if once && last {
				return nil, fmt.Errorf("the last of %s", iterator)
			}
			items, err := r.items(args[0])
			if err != nil || len(items) == 0 {
				return undefined{name}, err
			}
			if once {
				of.items = items[1:]
			}
			if last {
				return items[len(items)-1], nil
			}
			return items[0], nil
		})
	}
	filterNames = map[string]filterFunc{
		"trim":  textFilter("trim", func(s string) func() method { return func() method { return textMethods["strip"](s) } }),
		"lower": asFilter("lower"), "upper": asFilter("upper"), "capitalize": asFilter("capitalize"), "replace": asFilter("replace"),
		"length": bare("length", lengthOf), "count": bare("count", lengthOf), "tojson": toJSON, "join": join, "default": defaultOf, "d": defaultOf,
		"first": end("first", false), "last": end("last", true),
		"list": bare("list", func(r *renderer, args []any, _ map[string]any) (any, error) {
			items, err := r.items(args[0])
			return &array{items, list}, err
		}),
		"string": bare("string", func(r *renderer, args []any, _ map[string]any) (any, error) { return r.str(args[0]) }),
		"items": bare("items", func(r *renderer, args []any, _ map[string]any) (any, error) {
			switch d := args[0].(type) {
			case *dict:
				v, err := dictMethods["items"](d)(r, nil, nil)
				if all, ok := v.(*array); ok {
					all.as = iterator
				}
				return v, err
			case undefined:
				return &array{as: iterator}, nil
			}
			return nil, fmt.Errorf("items of %s", kindOf(args[0]))
		}),
		"reverse": bare("reverse", func(r *renderer, args []any, _ map[string]any) (any, error) {
			of, ok := args[0].(*array)
			if !ok {
				return r.slice(args[0], []any{nil, nil, int64(-1)})
			}
			as := iterator
			if of.as == iterator { // Python cannot reverse it, and Jinja makes a list
				as = list
			}
			items, err := r.items(of)
			r.spend(len(items))
			items = slices.Clone(items)
			slices.Reverse(items)
			return &array{items, as}, err
		}),
		"safe": bare("safe", func(r *renderer, args []any, _ map[string]any) (any, error) { return args[0], nil }),
		"map":  mapped, "selectattr": selection(true), "rejectattr": selection(false),
	}
	kind := func(is func(v any) bool) func(r *renderer, args []any) (bool, error) {
		return func(r *renderer, args []any) (bool, error) {
			if len(args) != 1 {
				return false, fmt.Errorf("a test with an argument that it does not take")
			}
			return is(args[0]), nil
		}
	}
	with := func(op string) func(r *renderer, args []any) (bool, error) {
		return func(r *renderer, args []any) (bool, error) {
			if len(args) != 2 {
				return false, fmt.Errorf("a test without the argument that it takes")
			}
			return r.compare(op, args[0], args[1])
		}
	}
	isMapping := func(v any) bool { _, ok := v.(*dict); return ok }
	isText := func(v any) bool { _, ok := v.(string); return ok }
	isArray := func(v any) bool { _, ok := v.(*array); return ok }
	isSequence := func(v any) bool { a, ok := v.(*array); return ok && a.indexed() }
	isDefined := func(v any) bool { _, ok := v.(undefined); return !ok }
	isInteger := func(v any) bool { _, ok := v.(int64); return ok }
	isFloat := func(v any) bool { _, ok := v.(float64); return ok }
	isBool := func(v any) bool { _, ok := v.(bool); return ok }
	parity := func(odd int64) func(v any) bool {
		return func(v any) bool { n, ok := integer(v); return ok && (n%2+2)%2 == odd }
	}
	testNames = map[string]func(r *renderer, args []any) (bool, error){
		"defined": kind(isDefined), "undefined": kind(func(v any) bool { return !isDefined(v) }), "none": kind(func(v any) bool { return v == nil }),
		"string": kind(isText), "mapping": kind(isMapping), "boolean": kind(isBool), "integer": kind(isInteger), "float": kind(isFloat),
		"number":   kind(func(v any) bool { _, ok := number(v); return ok }),
		"iterable": kind(func(v any) bool { return isText(v) || isArray(v) || isMapping(v) || !isDefined(v) }),
		"sequence": kind(func(v any) bool { return isText(v) || isSequence(v) || isMapping(v) || !isDefined(v) }),
		"true":     kind(func(v any) bool { return v == true }), "false": kind(func(v any) bool { return v == false }), "odd": kind(parity(1)), "even": kind(parity(0)),
		"eq": with("=="), "equalto": with("=="), "ne": with("!="), "in": with("in"), "lt": with("<"), "le": with("<="), "gt": with(">"), "ge": with(">="),
	}
}

func lengthOf(r *renderer, args []any, _ map[string]any) (any, error) {
	switch v := args[0].(type) {
	case string:
		r.spend(len(v) / 64)
		return int64(utf8.RuneCountInString(v)), r.fault
	case *array:
		if v.as == iterator {
			break
		}
		return int64(len(v.items)), nil
	case *dict:
		return int64(len(v.keys)), nil
	case undefined:
		return int64(0), nil
	}
	return nil, fmt.Errorf("the length of %s", kindOf(args[0]))
}

func toJSON(r *renderer, args []any, named map[string]any) (any, error) {
	indent := int64(-1)
	for name, v := range named {
		n, ok := integer(v)
		switch {
		case name == "ensure_ascii" && v == false:
		case name == "indent" && (ok || v == nil):
			if ok {
				indent = n
			}
		default:
			return nil, fmt.Errorf("tojson with %s is not supported", name)
		}
	}
	if len(args) > 1 || indent > 16 {
		return nil, fmt.Errorf("tojson with these arguments is not supported")
	}
	var out strings.Builder
	err := r.json(&out, args[0], int(indent), 0)
	return out.String(), err
}

func join(r *renderer, args []any, named map[string]any) (any, error) {
	if len(args) > 2 || len(named) > 0 {
		return nil, fmt.Errorf("join with an attribute is not supported")
	}
	by := ""
	if len(args) == 2 {
		var err error
		if by, err = r.str(args[1]); err != nil {
			return nil, err
		}
	}
	items, err := r.items(args[0])
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	for i, v := range items {
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString(by)
		}
		if out.WriteString(s); out.Len() > mostOutput {
			return nil, fmt.Errorf("a text of more than %d bytes", mostOutput)
		}
		r.spend(1 + (len(s)+len(by))/64)
	}
	return out.String(), r.fault
}

func defaultOf(r *renderer, args []any, named map[string]any) (any, error) {
	falsy := len(args) > 2 && truth(args[2]) || truth(named["boolean"])
	var value any = ""
	if v, ok := named["default_value"]; ok {
		value = v
	}
	if len(args) > 1 {
		value = args[1]
	}
	if _, lacks := args[0].(undefined); lacks || falsy && !truth(args[0]) {
		return value, nil
	}
	return args[0], nil
}

func mapped(r *renderer, args []any, named map[string]any) (any, error) {
	items, err := r.items(args[0])
	if err != nil {
		return nil, err
	}
	out := &array{as: iterator}
	for _, v := range items {
		if r.spend(1); r.fault != nil {
			return nil, r.fault
		}
		switch {
		case len(args) == 1 && len(named) == 1 && named["attribute"] != nil:
			v, err = r.path(v, named["attribute"])
		case len(args) == 2 && len(named) == 0:
			name, _ := args[1].(string)
			f := filterNames[name]
			if f == nil {
				return nil, fmt.Errorf("map by %.40q is not supported", name)
			}
			v, err = f(r, []any{v}, nil)
		default:
			return nil, fmt.Errorf("map with these arguments is not supported")
		}
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
	}
	return out, r.fault
}

func (r *renderer) path(v, name any) (any, error) {
	s, ok := name.(string)
	if !ok || strings.Contains(s, ".") {
		return nil, fmt.Errorf("an attribute that is not one name is not supported")
	}
	r.spend(1)
	return r.item(v, s)
}

func selection(wanted bool) filterFunc {
	return func(r *renderer, args []any, named map[string]any) (any, error) {
		if len(args) < 2 || len(args) > 4 || len(named) > 0 {
			return nil, fmt.Errorf("selectattr and rejectattr take an attribute, a test and its argument")
		}
		items, err := r.items(args[0])
		if err != nil {
			return nil, err
		}
		out := &array{as: iterator}
		for _, v := range items {
			of, err := r.path(v, args[1])
			if err != nil {
				return nil, err
			}
			ok := truth(of)
			if len(args) > 2 {
				name, _ := args[2].(string)
				test := testNames[name]
				if name == "==" {
					test = testNames["eq"]
				}
				if test == nil {
					return nil, fmt.Errorf("the test %.40q is not supported", name)
				}
				if ok, err = test(r, append([]any{of}, args[3:]...)); err != nil {
					return nil, err
				}
			}
			if ok == wanted {
				out.items = append(out.items, v)
			}
		}
		return out, r.fault
	}
}
