package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/dtype"
)

const (
	gomlxVariables  = 50_000
	gomlxParams     = entryLimit
	gomlxParamBytes = 2 << 20
	gomlxRank       = 32

	gomlxParamsSection = "params"
	gomlxOtherSection  = "params.other"
)

func gomlxType(name string) safetensors.DType {
	inFile := dtype.Named(name).InFile()
	if inFile == "" {
		inFile = map[string]string{"F8E5M2": "F8_E5M2", "F8E4M3FN": "F8_E4M3", "F8E5M2FNUZ": "F8_E5M2FNUZ", "F8E4M3FNUZ": "F8_E4M3FNUZ", "F8E8M0FNU": "F8_E8M0"}[name]
	}
	d, err := safetensors.ParseDType(inFile)
	if err != nil {
		return 0
	}
	return d
}

type gomlxMeta struct {
	tensors []Tensor
	bytes   int64
	params  Params
	other   map[string]gomlxOther
	form    string
}

type gomlxOther struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// encoding/json needs many times the text's memory.
func parseGoMLX(text []byte) (*gomlxMeta, error) {
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	top := make([][]byte, 3)
	if err := gomlxFields(bytes.TrimSpace(text), top, "Params", "Variables", "BinFormat"); err != nil {
		return nil, err
	}
	m := &gomlxMeta{params: Params{}, other: map[string]gomlxOther{}}
	if top[2] != nil {
		var err error
		if m.form, err = gomlxText(top[2]); err != nil {
			return nil, fmt.Errorf("field BinFormat: %w", err)
		}
	}
	if err := m.parseParams(top[0]); err != nil {
		return nil, err
	}
	return m, m.parseVariables(top[1])
}

func (m *gomlxMeta) parseVariables(list []byte) error {
	n, err := gomlxCount(list, "Variables", gomlxVariables)
	if err != nil {
		return err
	}
	m.tensors = make([]Tensor, 0, n)
	seen := make(map[string]bool, n)
	fields := make([][]byte, 5)
	for object := range elements(list) {
		if err := gomlxFields(object, fields, "ParameterName", "Dimensions", "DType", "Pos", "Length"); err != nil {
			return fmt.Errorf("variable %d: %w", len(m.tensors), err)
		}
		t, err := m.parseVariable(fields)
		if err == nil && seen[t.Name] {
			err = errors.New("it appears twice")
		}
		if err != nil {
			return fmt.Errorf("variable %d, %.100q: %w", len(m.tensors), t.Name, err)
		}
		seen[t.Name] = true
		m.tensors = append(m.tensors, t)
	}
	return nil
}

func (m *gomlxMeta) parseVariable(fields [][]byte) (t Tensor, err error) {
	if t.Name, err = gomlxText(fields[0]); err != nil {
		return t, err
	}
	// v0.26 appends a slash even to scopes that end with one.
	full, ok := strings.CutPrefix(t.Name, "var:/")
	if !ok {
		return t, errors.New(`expected a name that begins with "var:/"`)
	}
	t.Name = strings.ReplaceAll("/"+full, "//", "/")
	if err := checkName(t.Name); err != nil {
		return t, err
	}
	if t.Dims, err = gomlxDims(fields[1]); err != nil {
		return t, err
	}
	name, err := gomlxText(fields[2])
	if err != nil {
		return t, err
	}
	if t.DType = gomlxType(name); t.DType == 0 {
		return t, fmt.Errorf("values of dtype %.20q cannot be kept in a checkpoint", name)
	}
	size, err := t.tensor().ByteSize()
	switch {
	case err != nil:
		return t, err
	case size > math.MaxInt64-m.bytes:
		return t, fmt.Errorf("the total size of all variables overflows an integer: %w", safetensors.ErrLimit)
	}
	for i, want := range []int64{m.bytes, size} {
		if got, err := strconv.ParseInt(string(fields[3+i]), 10, 64); err != nil || got != want {
			return t, fmt.Errorf("%s is %s, expected %d: variables follow each other, %v of %v takes %d bytes", []string{"Pos", "Length"}[i], cut(fields[3+i]), want, t.Dims, t.DType, size)
		}
	}
	m.bytes += size
	return t, nil
}

func gomlxDims(list []byte) ([]int, error) {
	n, err := gomlxCount(list, "Dimensions", gomlxRank)
	if err != nil {
		return nil, err
	}
	dims := make([]int, 0, n)
	for text := range elements(list) {
		dim, err := strconv.Atoi(string(cut(text)))
		if err != nil {
			return nil, fmt.Errorf("dims: %w", err)
		}
		dims = append(dims, dim)
	}
	return dims, nil
}

func (m *gomlxMeta) parseParams(list []byte) error {
	if len(list) > gomlxParamBytes {
		return fmt.Errorf("all parameters take %d bytes, over %d: %w", len(list), gomlxParamBytes, safetensors.ErrLimit)
	}
	if _, err := gomlxCount(list, "Params", gomlxParams); err != nil {
		return err
	}
	fields := make([][]byte, 4)
	for object := range elements(list) {
		if err := gomlxFields(object, fields, "Scope", "Key", "Value", "ValueType"); err != nil {
			return fmt.Errorf("a parameter: %w", err)
		}
		var texts [3]string
		for i, field := range []int{0, 1, 3} {
			var err error
			if texts[i], err = gomlxText(fields[field]); err != nil {
				return fmt.Errorf("a parameter: %w", err)
			}
		}
		name := strings.TrimSuffix(texts[0], "/") + "/" + texts[1]
		_, isParam := m.params[name]
		if _, isOther := m.other[name]; isParam || isOther {
			return fmt.Errorf("the parameter %.100q appears twice", name)
		}
		if err := m.addParam(name, texts[2], fields[2]); err != nil {
			return fmt.Errorf("parameter %.100q of type %.20s: got %s: %w", name, texts[2], cut(fields[2]), err)
		}
	}
	return nil
}

func (m *gomlxMeta) addParam(name, kind string, value []byte) (err error) {
	var x any
	switch kind {
	case "<nil>":
		x, err = decodeParam("nil", value)
	case "bool", "string", "float64":
		x, err = decodeParam(kind, value)
	case "[]uint8":
		x, err = decodeParam("bytes", value)
	case "float32":
		x64, parseErr := strconv.ParseFloat(string(value), 32)
		x, err = float32(x64), parseErr
	case "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64":
		x, err = decodeInteger(kind, slices.Concat([]byte{'"'}, value, []byte{'"'}))
	default:
		m.other[name] = gomlxOther{kind, value}
		return nil
	}
	m.params[name] = x
	return err
}

func (m *gomlxMeta) sections() (map[string]json.RawMessage, error) {
	params, err := encodeSection(m.params)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{gomlxParamsSection: params}
	if len(m.other) > 0 {
		all[gomlxOtherSection], err = encodeSection(m.other)
	}
	return all, err
}

// gomlxFields allows no others. Only the last may be missing, in old files.
func gomlxFields(object []byte, values [][]byte, names ...string) error {
	clear(values)
	if object[0] != '{' {
		return fmt.Errorf("expected an object, got %s", cut(object))
	}
	for key, value := range members(object) {
		i := slices.IndexFunc(names, func(n string) bool { return string(key[1:len(key)-1]) == n })
		if i < 0 {
			return fmt.Errorf("unknown field %s", cut(key))
		}
		values[i] = value
	}
	for i, v := range values {
		if v == nil && names[i] != "BinFormat" {
			return fmt.Errorf("no field %q", names[i])
		}
	}
	return nil
}

func gomlxText(text []byte) (string, error) {
	if text[0] != '"' {
		return "", fmt.Errorf("expected a string, got %s", cut(text))
	}
	b, err := appendKey(nil, text)
	return string(b), err
}

func gomlxCount(list []byte, name string, limit int) (n int, err error) {
	if string(list) == "null" {
		return 0, nil
	}
	if list[0] != '[' {
		return 0, fmt.Errorf("%s: expected a list, got %s", name, cut(list))
	}
	for range elements(list) {
		if n++; n > limit {
			return 0, fmt.Errorf("%s: more than %d: %w", name, limit, safetensors.ErrLimit)
		}
	}
	return n, nil
}

func elements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		depth, from := 0, 0
		for i := 0; i < len(list); i++ {
			switch c := list[i]; c {
			case '"':
				i = stringEnd(list, i) - 1
			case '{', '[':
				if depth++; depth == 1 {
					from = i + 1
				}
			case '}', ']', ',':
				ends := depth == 1
				if c != ',' {
					depth--
				}
				if !ends {
					continue
				}
				if text := bytes.TrimSpace(list[from:i]); len(text) > 0 && !yield(text) {
					return
				}
				from = i + 1
			}
		}
	}
}
