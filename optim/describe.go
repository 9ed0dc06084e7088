package optim

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// String returns the chain's links ("adam, weight_decay"), or the type of a GoMLX optimizer.
func (o *Optimizer) String() string {
	if o.other != nil {
		return fmt.Sprintf("%T", o.other)
	}
	return o.Describe()[""]
}

// Describe returns the optimizer's settings as text by name, to save and compare: the links ("adam, weight_decay")
// under "", the rate under "rate", each link's settings under its name. For a GoMLX optimizer, "" has its fields
// without the rate. Zero fields are omitted. Functions are described by name.
func (o *Optimizer) Describe() map[string]string {
	if o.other != nil {
		d := &describer{rates: true}
		said := map[string]string{"": d.say(reflect.ValueOf(o.other), 0)}
		if d.rate != "" {
			said["rate"] = d.rate
		}
		return said
	}
	said := map[string]string{"rate": strconv.FormatFloat(o.rate, 'g', -1, 64)}
	var names []string
	for _, t := range o.chain {
		name := "nothing"
		if t != nil {
			name = t.Name()
		}
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s_%d", t.Name(), n)
		}
		names = append(names, name)
		said[name] = describe(t)
	}
	said[""] = "gradient descent"
	if len(names) > 0 {
		said[""] = strings.Join(names, ", ")
	}
	return said
}

func describe(v any) string { return new(describer).say(reflect.ValueOf(v), 0) }

type describer struct {
	rates bool
	rate  string
}

const deep = 6

func (d *describer) say(v reflect.Value, depth int) string {
	if !v.IsValid() || depth > deep {
		return ""
	}
	if v.CanInterface() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		if s, ok := v.Interface().(fmt.Stringer); ok {
			return fmt.Sprint(s) // not s.String(): fmt turns its panic into text
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float32:
		return strconv.FormatFloat(v.Float(), 'g', -1, 32)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Pointer, reflect.Interface:
		return d.say(v.Elem(), depth+1)
	case reflect.Func:
		if f := runtime.FuncForPC(v.Pointer()); !v.IsNil() && f != nil {
			return path.Base(f.Name())
		}
	case reflect.Slice, reflect.Array:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, d.say(v.Index(i), depth+1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Struct:
		return d.fields(v, depth)
	}
	if v.CanInt() {
		return strconv.FormatInt(v.Int(), 10)
	}
	if v.CanUint() {
		return strconv.FormatUint(v.Uint(), 10)
	}
	return "" // not a setting
}

func (d *describer) fields(v reflect.Value, depth int) string {
	var parts []string
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		if field.IsZero() {
			continue
		}
		said := d.say(field, depth+1)
		switch {
		case d.rates && field.CanFloat() && strings.HasSuffix(strings.ToLower(name), "learningrate"):
			d.rate = said
		case said != "":
			parts = append(parts, name+" "+said)
		}
	}
	return v.Type().Name() + "{" + strings.Join(parts, ", ") + "}"
}
