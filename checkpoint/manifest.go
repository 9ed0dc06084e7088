package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

const (
	format        = 1
	shardedFormat = 2 // with sharded tensors in rank files
	manifestLimit = 64 << 20
	tensorLimit   = 1_000_000
	entryLimit    = 10_000
	plainLimit    = 256
)

type manifest struct {
	format   int
	step     Step
	time     time.Time
	metrics  map[string]float
	state    stateSum
	sums     map[string]crc
	ranks    map[string]stateSum
	cuts     map[string]*shardedTensor
	sections map[string]json.RawMessage
}

type stateSum struct {
	Size       int64 `json:"size"`
	HeaderSize int64 `json:"header_size"` // with the 8 bytes before it
	HeaderSum  crc   `json:"header_crc32c"`
}

type crc uint32

func (c crc) String() string               { return fmt.Sprintf("%08x", uint32(c)) }
func (c crc) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

func (c *crc) UnmarshalJSON(text []byte) error {
	if len(text) != 10 || text[0] != '"' {
		return fmt.Errorf("%s is not a checksum; expected 8 hexadecimal digits in quotation marks", cut(text))
	}
	n, err := strconv.ParseUint(string(text[1:9]), 16, 32)
	*c = crc(n)
	return err
}

func (m *manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\n")
	for i, field := range m.fields() {
		text, err := field.encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%q: %s", field.name, text)
	}
	b.WriteString("\n}\n")
	if b.Len() > manifestLimit {
		return nil, fmt.Errorf("%s takes %d bytes, over %d: %w", manifestName, b.Len(), manifestLimit, safetensors.ErrLimit)
	}
	return b.Bytes(), nil
}

type field struct {
	name   string
	encode func() ([]byte, error)
	decode func([]byte) error
}

func (m *manifest) fields() []field {
	fields := []field{
		plain("format", &m.format),
		plain("step", &m.step),
		plain("time", &m.time),
		byName("metrics", entryLimit, &m.metrics, float.MarshalJSON, func(text []byte) (f float, err error) {
			err = f.UnmarshalJSON(text)
			return f, err
		}),
		plain("state", &m.state),
		byName("tensors", tensorLimit, &m.sums, crc.MarshalJSON, func(text []byte) (c crc, err error) {
			err = c.UnmarshalJSON(text)
			return c, err
		}),
		byName("sections", entryLimit, &m.sections, func(raw json.RawMessage) ([]byte, error) { return json.Marshal(raw) },
			func(text []byte) (json.RawMessage, error) { return text, nil }),
	}
	if m.format == shardedFormat {
		fields = append(fields, byName("ranks", tensorLimit, &m.ranks, encodeAny[stateSum], decodeStrict[stateSum]),
			byName("cut", tensorLimit, &m.cuts, encodeAny[*shardedTensor], decodeStrict[*shardedTensor]))
	}
	return fields
}

func encodeAny[T any](x T) ([]byte, error) { return json.Marshal(x) }

func decodeStrict[T any](text []byte) (x T, err error) {
	if string(text) == "null" {
		return x, errors.New("got null")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return x, d.Decode(&x)
}

func plain[T any](name string, to *T) field {
	return field{
		name,
		func() ([]byte, error) { return json.Marshal(*to) },
		func(text []byte) error {
			if string(text) == "null" || len(text) > plainLimit {
				return fmt.Errorf("got %s", cut(text))
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			return d.Decode(to)
		},
	}
}

func byName[T any](name string, limit int, to *map[string]T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) field {
	return field{
		name,
		func() ([]byte, error) {
			if len(*to) > limit {
				return nil, fmt.Errorf("%d, over %d: %w", len(*to), limit, safetensors.ErrLimit)
			}
			var b bytes.Buffer
			b.WriteByte('{')
			for i, key := range sortedKeys(*to) {
				value, err := encode((*to)[key])
				if err != nil {
					return nil, fmt.Errorf("%q: %w", key, err)
				}
				spelled, err := json.Marshal(key)
				if err != nil {
					return nil, err
				}
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, "\n %s: %s", spelled, value)
			}
			b.WriteString("\n}")
			return b.Bytes(), nil
		},
		func(text []byte) error {
			if text[0] != '{' {
				return fmt.Errorf("expected an object, got %s", cut(text))
			}
			n := 0
			for range members(text) {
				if n++; n > limit {
					return fmt.Errorf("more than %d: %w", limit, safetensors.ErrLimit)
				}
			}
			*to = make(map[string]T, n) // growing needs twice the memory
			var key []byte
			for spelled, value := range members(text) {
				var err error
				if key, err = appendKey(key[:0], spelled); err != nil {
					return err
				}
				if (*to)[string(key)], err = decode(value); err != nil {
					return fmt.Errorf("%s: %w", cut(spelled), err)
				}
			}
			return nil
		},
	}
}

// parseManifest accepts only encode's output, except for spaces and order. The result shares the text's memory.
func parseManifest(text []byte) (*manifest, error) {
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	if text = bytes.TrimSpace(text); text[0] != '{' {
		return nil, fmt.Errorf("expected an object, got %s", cut(text))
	}
	found := map[string][]byte{}
	for spelled, value := range members(text) {
		key := string(spelled[1 : len(spelled)-1])
		if found[key] = value; len(found) > 100 {
			return nil, fmt.Errorf("more than 100 fields: %w", safetensors.ErrLimit)
		}
	}
	m := &manifest{}
	fields := m.fields()
	for i := 0; i < len(fields); i++ {
		field := fields[i]
		value, ok := found[field.name]
		if !ok {
			return nil, fmt.Errorf("no field %q", field.name)
		}
		if err := field.decode(value); err != nil {
			return nil, fmt.Errorf("field %q: %w", field.name, err)
		}
		if i == 0 { // the format first: the rest may differ
			if m.format != format && m.format != shardedFormat {
				return nil, m.otherFormat()
			}
			fields = m.fields()
		}
		delete(found, field.name)
	}
	for key := range found {
		return nil, fmt.Errorf("unknown field %q", cut([]byte(key)))
	}
	return m, m.check()
}

func (m *manifest) otherFormat() error {
	if m.format > shardedFormat {
		return fmt.Errorf("format %d, this lazo reads up to %d: %w; load it with that one", m.format, shardedFormat, ErrNewer)
	}
	return fmt.Errorf("format %d, expected %d to %d", m.format, format, shardedFormat)
}

func (m *manifest) check() error {
	switch {
	case m.step < 0:
		return fmt.Errorf("step %d is negative", m.step)
	case m.time.Before(time.Unix(0, 0)) || m.time.Year() > 2261:
		return fmt.Errorf("the time %v is not between 1970 and 2261", m.time)
	case m.state.HeaderSize < 0 || m.state.HeaderSize > m.state.Size:
		return fmt.Errorf("a header of %d in a file of %d bytes", m.state.HeaderSize, m.state.Size)
	}
	return m.checkSharded()
}

func commit(manifest []byte) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(manifest), manifestName)
}

func readManifest(open opener, dir string, step Step) (*manifest, error) {
	path := dir + "/" + commitName
	committed, err := readSmall(open, path, 1<<10)
	if err != nil {
		return nil, err
	}
	if len(committed) != len(commit(nil)) {
		return nil, damaged(path, fmt.Errorf("%d bytes, expected %d", len(committed), len(commit(nil))))
	}
	path = dir + "/" + manifestName
	text, err := readSmall(open, path, manifestLimit)
	if err != nil {
		return nil, err
	}
	if want := commit(text); want != string(committed) {
		return nil, damaged(path, fmt.Errorf("SHA-256 is %.64s, %s says %.64q", want, commitName, committed))
	}
	m, err := parseManifest(text)
	if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("%s: %w", path, err)
	} else if err != nil {
		return nil, damaged(path, err)
	}
	if m.step != step {
		return nil, damaged(path, fmt.Errorf("its step is %d, but the folder's name has step %d", m.step, step))
	}
	return m, nil
}

func damaged(path string, err error) error { return &DamagedError{Path: path, Err: err} }

func readSmall(open opener, path string, limit int64) ([]byte, error) {
	file, err := openFile(open, path)
	if err != nil {
		return nil, err
	}
	text, err := readAll(file, path, limit)
	return text, errors.Join(err, file.Close())
}

func readAll(file file, path string, limit int64) ([]byte, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, damaged(path, fmt.Errorf("%d bytes, expected at most %d: %w", size, limit, safetensors.ErrLimit))
	}
	if size == 0 {
		return nil, nil
	}
	text := make([]byte, size)
	n, err := file.ReadAt(text, 0)
	if int64(n) == size {
		return text, nil
	} else if err == io.EOF {
		return nil, damaged(path, fmt.Errorf("%w after %d of %d bytes", io.ErrUnexpectedEOF, n, size))
	}
	return nil, err
}
