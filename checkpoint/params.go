package checkpoint

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"unicode/utf8"
)

// Params are values by name whose type and value JSON preserves exactly: bool, string, integers, float32, float64,
// []byte, and nil. A value is {"uint64":"18446744073709551615"}, for example, or {"text64": …} in base64 for non-UTF-8
// text.
type Params map[string]any

// MarshalJSON returns an error for other types.
func (p Params) MarshalJSON() ([]byte, error) {
	out := make(map[string]map[string]any, len(p))
	for name, value := range p {
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("checkpoint: parameter %q: the name is not UTF-8", name)
		}
		kind, text, err := encodeParam(value)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: parameter %q: %w", name, err)
		}
		out[name] = map[string]any{kind: text}
	}
	return json.Marshal(out)
}

func encodeParam(value any) (kind string, text any, err error) {
	kind = fmt.Sprintf("%T", value)
	switch x := value.(type) {
	case nil:
		return "nil", nil, nil
	case bool:
		return kind, x, nil
	case string:
		if !utf8.ValidString(x) {
			return "text64", base64.StdEncoding.EncodeToString([]byte(x)), nil
		}
		return kind, x, nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return kind, fmt.Sprint(x), nil
	case float64:
		return kind, float(x), nil
	case float32:
		if x != x { // a float64 may lose a NaN's bits
			return kind, fmt.Sprintf("NaN:%08x", math.Float32bits(x)), nil
		}
		return kind, float(x), nil
	case []byte:
		return "bytes", base64.StdEncoding.EncodeToString(x), nil
	}
	return "", nil, fmt.Errorf("a %T cannot be kept; the type must be one that Params names", value)
}

func (p *Params) UnmarshalJSON(text []byte) error {
	var in map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	out := make(Params, len(in))
	for name, typed := range in {
		if len(typed) != 1 {
			return fmt.Errorf("checkpoint: parameter %q: expected an object with one type, got %d", name, len(typed))
		}
		for kind, raw := range typed {
			value, err := decodeParam(kind, raw)
			if err != nil {
				return fmt.Errorf("checkpoint: parameter %q: %s: %w", name, kind, err)
			}
			out[name] = value
		}
	}
	if *p == nil {
		*p = out
	} else {
		maps.Copy(*p, out)
	}
	return nil
}

func decodeParam(kind string, raw json.RawMessage) (any, error) {
	if isNil := string(raw) == "null"; isNil != (kind == "nil") {
		return nil, fmt.Errorf("got %s", cut(raw))
	}
	switch kind {
	case "nil":
		return nil, nil
	case "bool":
		return decodeAs[bool](raw)
	case "string":
		return decodeAs[string](raw)
	case "text64":
		b, err := decodeAs[[]byte](raw)
		return string(b), err
	case "bytes":
		b, err := decodeAs[[]byte](raw)
		if b == nil {
			b = []byte{}
		}
		return b, err
	case "float64":
		x, err := decodeAs[float](raw)
		return float64(x), err
	case "float32":
		return decodeFloat32(raw)
	}
	return decodeInteger(kind, raw)
}

func decodeAs[T any](raw json.RawMessage) (x T, err error) {
	err = json.Unmarshal(raw, &x)
	return x, err
}

func decodeFloat32(raw json.RawMessage) (any, error) {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(s) == len("NaN:")+8 && s[:4] == "NaN:" {
		bits, err := strconv.ParseUint(s[4:], 16, 32)
		return math.Float32frombits(uint32(bits)), err
	}
	x, err := decodeAs[float](raw)
	if err == nil && float64(x) != float64(float32(x)) {
		err = fmt.Errorf("%v is not a float32", float64(x))
	}
	return float32(x), err
}

func decodeInteger(kind string, raw json.RawMessage) (any, error) {
	s, err := decodeAs[string](raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "int":
		return parseInt[int](s, strconv.IntSize)
	case "int8":
		return parseInt[int8](s, 8)
	case "int16":
		return parseInt[int16](s, 16)
	case "int32":
		return parseInt[int32](s, 32)
	case "int64":
		return parseInt[int64](s, 64)
	case "uint":
		return parseUint[uint](s, strconv.IntSize)
	case "uint8":
		return parseUint[uint8](s, 8)
	case "uint16":
		return parseUint[uint16](s, 16)
	case "uint32":
		return parseUint[uint32](s, 32)
	case "uint64":
		return parseUint[uint64](s, 64)
	}
	return nil, fmt.Errorf("a type that Params does not support")
}

func parseInt[T int | int8 | int16 | int32 | int64](s string, bits int) (any, error) {
	x, err := strconv.ParseInt(s, 10, bits)
	return T(x), err
}

func parseUint[T uint | uint8 | uint16 | uint32 | uint64](s string, bits int) (any, error) {
	x, err := strconv.ParseUint(s, 10, bits)
	return T(x), err
}
