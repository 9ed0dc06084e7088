package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gomlx/compute/shapes"
)

const (
	format        = 2        // 2 with several batch sizes, else 1
	manifestLimit = 64 << 20 // bytes

	programName  = "program.mlir"
	manifestName = "manifest.json"
	weightsName  = "weights.safetensors"
	exampleName  = "example.safetensors"
	sumName      = "manifest.sha256"
)

type manifest struct {
	Format    int             `json:"format"`
	Lazo      string          `json:"lazo"`
	Name      string          `json:"name"`
	StableHLO string          `json:"stablehlo"`
	Files     map[string]file `json:"files"` // all but the manifest
	Inputs    []value         `json:"inputs"`
	Outputs   []value         `json:"outputs"`
}

type file struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type value struct {
	Name     string   `json:"name"`
	Role     Role     `json:"role"`
	DType    string   `json:"dtype"` // of StableHLO, like "f32"
	Shape    []int    `json:"shape"`
	Replaces string   `json:"replaces,omitempty"`
	Fields   []string `json:"fields,omitempty"`
}

func newManifest(p *Program, files map[string]file) (*manifest, error) {
	m := &manifest{Format: 1, Lazo: lazoVersion(), Name: p.Name, StableHLO: p.StableHLO, Files: files}
	if len(p.Sizes) > 0 {
		m.Format = 2
	}
	var err error
	if m.Inputs, err = encodeValues(p.Inputs); err == nil {
		m.Outputs, err = encodeValues(p.Outputs)
	}
	return m, err
}

func encodeValues(values []Value) ([]value, error) {
	encoded := make([]value, len(values))
	for i, v := range values {
		name, err := nameOf(v.Shape.DType)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", v.Name, err)
		}
		encoded[i] = value{v.Name, v.Role, name, append([]int{}, v.Shape.Dimensions...), v.Replaces, v.Fields}
	}
	return encoded, nil
}

func decodeValues(values []value) ([]Value, error) {
	decoded := make([]Value, len(values))
	for i, v := range values {
		dtype, err := named(v.DType)
		if err != nil {
			return nil, fmt.Errorf("%.40q: %w", v.Name, err)
		}
		decoded[i] = Value{v.Name, v.Role, shapes.Shape{DType: dtype, Dimensions: v.Shape}, v.Replaces, v.Fields}
	}
	return decoded, nil
}

func sumOf(manifest []byte) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(manifest), manifestName)
}

func (m *manifest) encode() ([]byte, error) {
	lines := func(values []value) (list [][]byte, err error) {
		for _, v := range values {
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			list = append(list, text)
		}
		return list, nil
	}
	inputs, err := lines(m.Inputs)
	if err != nil {
		return nil, err
	}
	outputs, err := lines(m.Outputs)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	for _, f := range []struct {
		name  string
		value any
	}{{"format", m.Format}, {"lazo", m.Lazo}, {"name", m.Name}, {"stablehlo", m.StableHLO}, {"files", m.Files}} {
		text, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "  %q: %s,\n", f.name, text)
	}
	fmt.Fprintf(&b, "  \"inputs\": [\n    %s\n  ],\n", bytes.Join(inputs, []byte(",\n    ")))
	fmt.Fprintf(&b, "  \"outputs\": [\n    %s\n  ]\n}\n", bytes.Join(outputs, []byte(",\n    ")))
	if b.Len() > manifestLimit {
		return nil, fmt.Errorf("%s takes %d bytes, expected at most %d", manifestName, b.Len(), manifestLimit)
	}
	return b.Bytes(), nil
}

func parseManifest(text []byte) (*manifest, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	// Another format may differ in all else. Unmarshal also refuses text after the object.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if head.Format > format {
		return nil, fmt.Errorf("format %d, this lazo reads up to %d: %w; load it with that one", head.Format, format, errNewer)
	}
	if head.Format < 1 {
		return nil, fmt.Errorf("format %d, expected 1 to %d", head.Format, format)
	}
	m := &manifest{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if !lazoVersions.MatchString(m.Lazo) || !hloVersions.MatchString(m.StableHLO) {
		return nil, fmt.Errorf("written by lazo %.40q, in StableHLO %.40q: expected versions, such as \"v0.1.0\" and \"1.13.3\"", m.Lazo, m.StableHLO)
	}
	return m, m.checkFiles()
}

var (
	lazoVersions = regexp.MustCompile(`^(unknown|\(devel\)|v\d+\.\d+\.\d+[-+.0-9A-Za-z]*)$`)
	hloVersions  = regexp.MustCompile(`^(\d+\.\d+\.\d+)?$`)
)

func (m *manifest) checkFiles() error {
	for name, f := range m.Files {
		_, sized := sizeIn(name)
		if name != programName && name != weightsName && name != exampleName && !(sized && m.Format > 1) {
			return fmt.Errorf("unknown file %.40q", name)
		}
		if f.Bytes < 0 || (sized || name == programName) && f.Bytes > maxText {
			return fmt.Errorf("%s of %d bytes", name, f.Bytes)
		}
	}
	if _, ok := m.Files[programName]; !ok {
		return fmt.Errorf("no file %s", programName)
	}
	return nil
}

func sizedName(size int) string { return fmt.Sprintf("program-%d.mlir", size) }

func sizeIn(name string) (size int, ok bool) {
	digits, found := strings.CutPrefix(name, "program-")
	digits, ends := strings.CutSuffix(digits, ".mlir")
	size, err := strconv.Atoi(digits)
	return size, found && ends && err == nil && size > 0 && name == sizedName(size)
}

func lazoVersion() string {
	const module = "github.com/lazo-ml/lazo"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Replace == nil && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}
