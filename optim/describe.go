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

// String names the links of the chain ("adam, weight_decay"), or the type of one of GoMLX's optimizers.
func (o *Optimizer) String() string {
	if o.other != nil {
		return fmt.Sprintf("%T", o.other)
	}
	return o.Describe()[""]
}

// Describe gives the settings of the optimizer in words, by name, so that they can be kept and compared: the names of
// its links ("adam, weight_decay") under "", the "rate", and each link's own under its name; of one of GoMLX's the
// values of its fields under "" and, apart from them, what it calls a learning rate. Fields that are zero are left out:
// they stand for defaults. Of a function only its name is known, not what it was made with.
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

// describer says values by reflection. A rate is the learning rate that it met, where rates are looked for.
type describer struct {
	rates bool
	rate  string
}

// deep is how many levels of fields are followed: what lies deeper, as a whole model, is no setting.
const deep = 6

func (d *describer) say(v reflect.Value, depth int) string {
	if !v.IsValid() || depth > deep {
		return ""
	}
	if v.CanInterface() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		if s, ok := v.Interface().(fmt.Stringer); ok {
			return fmt.Sprint(s) // not s.String(): fmt turns its panic into a text
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
	return "" // no setting
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
